"""Tables of docs/performance.md from one GPU to many (scripts/gpu-scaling), for whatever numbers of GPUs were
measured. bench/tables.py has all other tables, and tells how a table is made."""
from scaling_sums import aggregate_rows, embedding_rows, gather_rows, sentences, training_rows


def of_parts(bench, parts, *functions):
    """The function of a table: what `functions` make of the entries on GPUs of these parts."""
    def rows(measured):
        entries = [entry for entry in measured.of(bench, device="cuda") if entry["case"]["part"] in parts]
        for function in functions:
            yield from function(entries)
        if not entries:
            yield "There are no figures yet."
    return rows


TABLES = {
    "scaling-aggregate": ("graph, width | on | way | ms | limit | over the limit | `bulk` / it | NCCL and cuSPARSE / it | "
                          "predicted | error | from 1 GPU | bound",
                          of_parts("scaling", ("aggregate", "papers100M"), aggregate_rows, sentences)),
    "scaling-train": ("graph, model | on | way | ms of an epoch | communication | from 1 GPU | bound",
                      of_parts("scaling", ("train", "sampled"), training_rows)),
    "scaling-gather": ("bytes of a row | on | own rows, GB/s per GPU | of all GPUs | Zipf | each remote row once | "
                       "hot rows kept", of_parts("scaling-gather", ("gather",), gather_rows)),
    "scaling-embeddings": ("step | on | plait.nn.EmbeddingBags, ms | PyTorch with NCCL, ms | ratio | M samples/s",
                           of_parts("scaling-embeddings", ("embeddings",), embedding_rows)),
}
