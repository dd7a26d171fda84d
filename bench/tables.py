"""The tables of docs/performance.md: what each row shows of which measurements of bench/measured.

A table is a header and a function, which scripts/bench-tables calls with the measurements. It yields rows
(tuples of cells) and sentences (text), which stand behind the table. measured(BENCH, NAME=VALUE...) is the
entry of this benchmark and case; a missing one is an error, so a cell is empty only if it says so here.
measured.of(BENCH, NAME=VALUE...) are all entries whose cases have these fields. A table without rows has no header."""
import math
from itertools import product

import scaling_tables

TABLES = {}


def table(name, header):
    """Registers the function of a table; `header` has its columns, between bars."""
    def register(rows):
        TABLES[name] = header, rows
        return rows
    return register


def mean(ratios):
    """Geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def three(x):
    """With about three digits: 1.48, 12.3, 142."""
    return f"{x:.2f}" if x < 10 else f"{x:.1f}" if x < 100 else f"{x:.0f}"


def spread(entry, digits, between="to", unit="ms"):
    median, least, most = (getattr(entry, f"{name}_{unit}") for name in ("median", "least", "most"))
    return f"{median:.{digits}f} ({least:.{digits}f} {between} {most:.{digits}f})"


# --- sums on one processor ---


@table("spmm", "graph, width | plait ms, median (least - most) | torch ms, median (least - most) | ratio")
def spmm(measured):
    ratios = []
    for (graph, scale), width in product((("reddit", 0.1), ("products", 0.2)), (16, 64, 128)):
        plait, torch = (measured("spmm", graph=graph, scale=scale, width=width, kernel=kernel)
                        for kernel in ("plait", "torch"))
        ratios.append(torch.median_ms / plait.median_ms)
        yield f"{graph} {width}", spread(plait, 1, "-"), spread(torch, 1, "-"), f"{ratios[-1]:.2f}"
    yield f"The geometric mean is {mean(ratios):.2f}."


@table("spmm-narrow", "graph | width 1, ms (cuSPARSE's over it) | width 2 | width 3 | width 4 | width 1 by groups")
def spmm_narrow(measured):
    ratios = []
    for graph in ("grid", "ring", "path", "star", "tree", "wide-tree", "clique", "cliques", "large-cliques", "uniform",
                  "rmat", "bipartite", "small-world", "crawl", "tiny-grid", "tiny-clique", "tiny-uniform",
                  "small-rmat", "small-crawl"):
        cells = []
        for width in (1, 2, 3, 4):
            cusparse, ours = (measured("spmm-narrow", graph=graph, width=width, kernel=kernel).median_ms
                              for kernel in ("cusparse", "clustered"))
            ratios.append(cusparse / ours)
            cells.append(f"{ours:.3f} ({ratios[-1]:.2f})")
        groups = "" if "clique" in graph and graph != "cliques" else \
            f"{measured('spmm-narrow', graph=graph, width=1, kernel='groups').median_ms:.3f}"
        yield graph, *cells, groups
    yield f"The geometric mean of the ratios is {mean(ratios):.2f}, the least {min(ratios):.2f}."


@table("spmm-cuda", "graph, width | cuSPARSE | sum, rows by size | sum, rows by cluster | "
                    "weighted, by cluster | bf16, by size | bf16, by cluster")
def spmm_cuda(measured):
    ratios = {kernel: [] for kernel in ("sum", "clustered", "weighted", "bf16", "bf16c")}
    for graph, width in product(("reddit", "products", "orkut", "proteins"), (16, 32, 64, 128, 256)):
        def ms(kernel, graph=graph, width=width):
            return measured("spmm-cuda", graph=graph, scale=1, width=width, kernel=kernel).median_ms
        cells = []
        for kernel in ratios:
            ratios[kernel].append(ms("cusparse") / ms(kernel))
            cells.append(f"{ms(kernel):.3f} ({ratios[kernel][-1]:.2f})")
        yield f"{graph} {width}", f"{ms('cusparse'):.3f}", *cells
    means = "{:.2f} by size, {:.2f} by cluster, {:.2f} weighted, {:.2f} and {:.2f} in bf16".format(
        *map(mean, ratios.values()))
    leasts = "{:.2f}, {:.2f}, {:.2f}, {:.2f} and {:.2f}".format(*map(min, ratios.values()))
    yield f"The geometric means of the ratios are {means}; the least ratios are {leasts}."


@table("width", "operation | 1 GPU: 5 | 17 | 47 | 101 | 2 GPUs: 5 | 17 | 47 | 101")
def width(measured):
    operations = {"sum": "sum", "scaled, as GCN's gradient": "scaled", "attention": "attention",
                  "attention, gradient": "attention back", "maximum": "max", "maximum, gradient": "max back"}
    for name, operation in operations.items():
        entries = (measured("width", graph="products", gpus=gpus, strategy="pipelined", wire="fp32",
                            operation=operation, width=width)
                   for gpus, width in product((1, 2), (5, 17, 47, 101)))
        yield name, *(f"{three(e.median_ms)} ({e.over_next:.2f})" for e in entries)


# --- aggregation on four GPUs ---


ZOO = ("grid", "ring", "path", "star", "tree", "wide-tree", "clique", "cliques", "large-cliques", "uniform",
       "rmat", "bipartite", "small-world", "crawl", "tiny-grid", "tiny-star", "tiny-clique", "tiny-uniform",
       "small-rmat", "small-crawl")


@table("zoo-1", "graph | shape | 16 | 64 | 128")
def zoo(measured):
    ratios = []
    for graph in ZOO:
        cells = []
        for width in (16, 64, 128):
            entry = measured("zoo", graph=graph, gpus=1, width=width)
            ratios.append(entry.rival_median_ms / entry.median_ms)
            cells.append(f"{entry.median_ms:.4f} ({ratios[-1]:.2f})")
        yield graph, entry.shape, *cells
    yield f"The geometric mean of the ratios is {mean(ratios):.2f}, the least {min(ratios):.2f}."


@table("renumbered", "graph, width | cuSPARSE, ids shuffled | Plait, ids shuffled | cuSPARSE, renumbered | "
                     "Plait, renumbered")
def renumbered(measured):
    shuffled, near = [], []
    for graph, width in product(("reddit", "products", "proteins", "orkut"), (16, 64, 128)):
        def ms(strategy, order, graph=graph, width=width):
            return measured("aggregate", graph=graph, gpus=1, wire="fp32", strategy=strategy, width=width,
                            order=order).median_ms
        cusparse = ms("cusparse", "shuffled")
        shuffled.append(cusparse / ms("pipelined", "shuffled"))
        near.append(cusparse / ms("pipelined", "communities"))
        yield (f"{graph} {width}", f"{cusparse:.3f}", f"{ms('pipelined', 'shuffled'):.3f} ({shuffled[-1]:.2f})",
               f"{ms('cusparse', 'communities'):.3f}",
               f"{ms('pipelined', 'communities'):.3f} ({near[-1]:.2f})")
    yield (f"The geometric means of the ratios are {mean(shuffled):.2f} with shuffled ids, where Plait orders "
           f"its work by clusters, and {mean(near):.2f} after renumbering; the least are {min(shuffled):.2f} "
           f"and {min(near):.2f}.")


def aggregate_on_four(measured, partition):
    means = {"bulk": [], "cusparse": [], "limit": []}
    for graph, width in product(("reddit", "products", "orkut", "proteins"), (16, 64, 128)):
        case = {"graph": graph, "wire": "fp32", "width": width}
        p, partial, bulk, cusparse = (
            measured("aggregate", **case, gpus=4, partition=partition, strategy=strategy)
            for strategy in ("pipelined", "partial", "bulk", "cusparse"))
        alone = measured("aggregate", **case, gpus=1, partition="edges", strategy="pipelined")
        means["limit"].append(p.median_ms / max(p.link_ms, p.sum_ms))
        means["bulk"].append(bulk.median_ms / p.median_ms)
        means["cusparse"].append(cusparse.median_ms / p.median_ms)
        yield (f"{graph} {width}", spread(p, 3), f"{p.passes}", f"{p.link_ms:.3f}", f"{p.sum_ms:.3f}",
               f"{means['limit'][-1]:.2f}", f"{partial.median_ms:.3f}",
               f"{bulk.median_ms:.3f} ({means['bulk'][-1]:.2f})",
               f"{cusparse.median_ms:.3f} ({means['cusparse'][-1]:.2f})",
               f"{alone.median_ms / p.median_ms:.2f}")
    if partition == "edges":
        yield (f"Geometric means over the twelve rows: `pipelined` is {mean(means['bulk']):.2f} times as fast "
               f"as `bulk`, {mean(means['cusparse']):.2f} times as fast as NCCL and cuSPARSE, and takes "
               f"{mean(means['limit']):.2f} times the limit, which is the longer of link and sum.")


for partition, name in {"edges": "aggregate", "clusters": "aggregate-clusters"}.items():
    table(name, "graph, width | pipelined | passes | link | sum | over the limit | partial | bulk | "
                "cusparse | 1 to 4 GPUs")(lambda measured, partition=partition:
                                          aggregate_on_four(measured, partition))


@table("messages", "graph | processors | rounds | ms per search | us per round | values sent")
def messages(measured):
    def words(graph, device, ranks):
        run = measured("messages", graph=graph, device=device, ranks=ranks)
        kind = {"cuda": "GPU", "cpu": "rank"}[device]
        return (graph, f"{ranks} {kind}" + ("s" if ranks > 1 else ""), f"{run.rounds:.0f}",
                spread(run, 2 if run.median_ms < 10 else 1), three(1e3 * run.median_ms / run.rounds),
                f"{run['values']:,.0f}")
    for graph in ("grid", "reddit", "products"):
        for gpus in (1, 2, 4):
            yield words(graph, "cuda", gpus)
    for ranks in (1, 2):
        yield words("grid", "cpu", ranks)


@table("apps-cuda", "graph | bfs | components | kcore | pagerank")
def apps_on_gpu(measured):
    for graph in ("reddit", "products", "orkut", "rmat", "small-world", "grid", "path", "star"):
        runs = (measured("apps", app=app, graph=graph, device="cuda", ranks=1, by="plait")
                for app in ("bfs", "components", "kcore", "pagerank"))
        yield graph, *(spread(run, 3 if run.median_ms < 10 else 1) for run in runs)


@table("groups-cuda", "graph | triangles | louvain | leiden")
def groups_on_gpu(measured):
    for graph in ("reddit", "products", "orkut"):
        runs = (measured("apps", app=app, graph=graph, device="cuda", ranks=1, by="plait")
                for app in ("triangles", "louvain", "leiden"))
        yield graph, *(spread(run, 1) for run in runs)


@table("apps-cpu", "app | graph | plait | GAP | GAP / plait")
def apps_on_cpu(measured):
    for app in ("bfs", "components"):
        for graph in ("rmat", "grid", "dcsbm", "path"):
            plait, gap = (measured("apps", app=app, graph=graph, device="cpu", ranks=1, by=by)
                          for by in ("plait", "gapbs"))
            yield app, graph, spread(plait, 2), spread(gap, 2), f"{gap.median_ms / plait.median_ms:.2f}"


# --- training on GPUs ---


@table("narrow", "| | ms per epoch, beside torch | later")
def narrow(measured):
    def entry(ranks, epochs):
        return measured("train", run="narrow", strategy="auto", ranks=ranks, epochs=epochs)
    torch = measured("gcn-torch", graph="reddit", hidden=16)
    yield "torch.sparse, 1 GPU", spread(torch, 2), ""
    for gpus in (1, 2, 4):
        yield (f"plait, {gpus} GPU" + ("s" if gpus > 1 else ""), f"{entry(gpus, 40).median_ms:.2f}",
               ", ".join(f"{ms:.2f}" for ms in entry(gpus, 100).runs_ms))
    yield f"Plait is {torch.median_ms / entry(1, 40).median_ms:.1f} times as fast as `torch.sparse` in one run."


@table("models", "| | 1 GPU | 2 GPUs | 4 GPUs | 1 to 2 | 1 to 4")
def models(measured):
    runs = {"sage": "narrow-sage", "sage, max": "narrow-max", "gin, no norm between layers": "narrow-gin",
            "gat": "narrow-gat"}
    for name, run in runs.items():
        one, two, four = (measured("train", run=run, strategy="auto", ranks=ranks, epochs=30).median_ms
                          for ranks in (1, 2, 4))
        yield name, f"{one:.2f}", f"{two:.2f}", f"{four:.2f}", f"{one / two:.2f}", f"{one / four:.2f}"


@table("widths", "| | 1 GPU | 2 GPUs | 1 to 2 | `bulk`, 2 GPUs | `bulk` over `auto`")
def widths(measured):
    runs = {"products, gcn, 3 layers of 256": "gcn", "products, sage, 3 layers of 256": "sage",
            "products, gat, 2 layers of 64, 4 heads": "gat", "products, gin, 5 layers of 64": "gin",
            "reddit, gcn, 3 layers of 256": "reddit",
            "reddit (128 features, 16 classes), gcn, 2 layers of 16": "narrow"}
    for name, run in runs.items():
        def ms(ranks, strategy="auto", run=run):
            return measured("train", run=run, strategy=strategy, ranks=ranks, epochs=15).median_ms
        def short(x):
            return f"{x:.2f}" if x < 10 else f"{x:.1f}"
        bulk = ("", "") if run == "gin" else (short(ms(2, "bulk")), f"{ms(2, 'bulk') / ms(2):.2f}")
        yield name, short(ms(1)), short(ms(2)), f"{ms(1) / ms(2):.2f}", *bulk


@table("spread", "| | 1 GPU, first step | later steps | 2 GPUs, first step | later steps")
def spread_steps(measured):
    for (name, model), before in product({"GCN": "gcn", "GraphSAGE": "sage"}.items(), (True, False)):
        cells = []
        for ranks in (1, 2):
            e = measured("spread", graph="products", model=model, layers=3, hidden=256, device="cuda",
                         ranks=ranks, **({"build": "before"} if before else {}))
            cells += [f"{e.first_ms:.0f}", f"{e.median_ms:.1f}"]
        yield f"{name}, before" if before else name, *cells


@table("exchange", "| | PyTorch Geometric, 1 GPU | Plait, 1 GPU | Plait, 2 GPUs | 1 GPU against PyTorch Geometric")
def exchange(measured):
    for name, model in {"TransformerConv": "transformer", "PNAConv": "pna"}.items():
        plain, *spreads = (
            measured("spread", graph="p", model=model, layers=3, hidden=64, device="cuda", ranks=ranks,
                     **by) for ranks, by in ((1, {"by": "PyTorch Geometric"}), (1, {}), (2, {})))
        ratio = "-" if "failed" in plain else f"{plain.median_ms / spreads[0].median_ms:.2f}"
        yield name, *(e["failed"] if "failed" in e else f"{e.median_ms:.1f}"
                      for e in (plain, *spreads)), ratio


SPREAD = """AGNNConv APPNP ARMAConv AntiSymmetricConv CGConv ClusterGCNConv DNAConv EdgeConv EGConv FAConv
    FeaStConv FiLMConv GATConv GATv2Conv GCN2Conv GENConv GINEConv GMMConv GatedGraphConv GeneralConv GraphConv
    LEConv LGConv MFConv MixHopConv NNConv PDNConv PNAConv PointNetConv PointTransformerConv RGATConv RGCNConv
    ResGatedGraphConv SGConv SSGConv SimpleConv TAGConv TransformerConv""".split()


@table("one-process", "| | PyTorch Geometric | after plait.parallelize | ratio")
def one_process(measured):
    ratios = []
    for layer in SPREAD:
        theirs, ours = (measured("one-process", layer=layer, way=way) for way in ("own", "spread"))
        ratios.append(theirs.median_ms / ours.median_ms)
        yield layer, spread(theirs, 0), spread(ours, 0), f"{ratios[-1]:.2f}"
    yield f"The least ratio is {min(ratios):.2f}, the geometric mean {mean(ratios):.2f}."


@table("models-cpu", "| | 1 rank | 2 ranks, bulk | 2 ranks, replicate | PyG, edge_index | PyG, sparse CSR")
def models_cpu(measured):
    names = {"gcn": "gcn, 2 layers of 16", "sage": "sage, 2 of 64", "gin": "gin, 5 of 64", "gat": "gat, 2 of 64, 8 heads"}
    for (model, name), work in product(names.items(), ("inference", "training")):
        def entry(model=model, work=work, **by):
            return measured("model", graph="products", model=model, work=work, device="cpu", **by)
        one, *two = (entry(by="plait", strategy=strategy, ranks=ranks)
                     for strategy, ranks in (("bulk", 1), ("bulk", 2), ("replicate", 2)))
        theirs = [entry(by=form) for form in ("edge_index", "sparse CSR")]
        yield (f"{name}: {work}", spread(one, 0), *(spread(e, 0) for e in two),
               *(f"{spread(e, 0)}, {e.median_ms / one.median_ms:.1f}" for e in theirs))


@table("models-cuda", "| | Plait | PyG, edge_index | PyG, sparse CSR")
def models_cuda(measured):
    names = {"gcn": "gcn, 2 layers", "sage": "sage, 2", "gin": "gin, 5", "gat": "gat, 2, 8 heads"}
    ratios = []
    for graph, (model, name), work in product(("products", "reddit"), names.items(), ("inference", "training")):
        def entry(graph=graph, model=model, work=work, **by):
            return measured("model", graph=graph, model=model, work=work, device="cuda", **by)
        one = entry(by="plait", strategy="pipelined", ranks=1)
        cells = []
        theirs = [entry(by=form) for form in ("edge_index", "sparse CSR")]
        for e in theirs:
            cells.append("out of memory" if "failed" in e else
                         f"{spread(e, 1)}, {e.median_ms / one.median_ms:.1f}")
        best = min((e.median_ms for e in theirs if "failed" not in e), default=None)
        if best is not None:
            ratios.append(best / one.median_ms)
        yield f"{graph}, {name}: {work}", spread(one, 1), *cells
    yield (f"The geometric mean of the ratios to the faster form of PyTorch Geometric is {mean(ratios):.2f}, the "
           f"least ratio {min(ratios):.2f}.")


@table("pairs-cuda", "| | Plait | PyG, edge_index | PyG, sparse CSR")
def pairs_cuda(measured):
    for model, work in product(("gat", "gatv2", "transformer"), ("inference", "training")):
        ours, *theirs = (measured("model", graph="products-tenth", model=model, work=work, device="cuda", by=by, **more)
                         for by, more in (("plait", {"strategy": "pipelined", "ranks": 1}), ("edge_index", {}),
                                          ("sparse CSR", {})))
        yield (f"{model}: {work}", spread(ours, 2),
               *(f"{spread(e, 1)}, {e.median_ms / ours.median_ms:.1f}" for e in theirs))


# --- links, Python, files ---


@table("link", "block | ring | ring, four copies per block | all targets at once | pull, ring")
def link(measured):
    for block in (4, 16, 40, 157, 512):
        entries = (measured("link", gpus=4, block_mib=block, way=way)
                   for way in ("ring", "in four", "at once", "pull"))
        yield f"{block} MiB", *(spread(e, 0, "-", "gb_s") for e in entries)


def layers(measured, graph, device, digits):
    names = {"gcn": "GCN", "sage": "SAGE, mean", "gat": "GAT, one head", "gin": "GIN, a linear map",
             "graph": "GraphConv", "sage-max": "SAGE, max", "sage-4": "SAGE, mean, min, max and std",
             "sg": "SG, 2 steps", "tag": "TAG, 2 steps", "appnp": "APPNP, 5 steps"}
    for model, name in names.items():
        ours, *theirs = (measured("layers", graph=graph, device=device, model=model, form=form)
                         for form in ("plait", "edge_index", "sparse CSR"))
        yield name, spread(ours, digits), *(
            failure(e) if "failed" in e else f"{spread(e, digits)}, {e.median_ms / ours.median_ms:.1f}"
            for e in theirs)


def failure(entry):
    return entry["failed"] if "memory" in entry["failed"] else "not supported"


for device, graph, digits in (("cpu", "s", 0), ("cuda", "pf", 1)):
    table(f"layers-{device}", "| | plait.nn | PyG, edge_index | PyG, sparse CSR")(
        lambda measured, case=(graph, device, digits): layers(measured, *case))


def edge_layers(measured, device, graphs, digits):
    names = {"gatv2": "GATv2", "transformer": "TransformerConv", "softmax": "SAGE, softmax",
             "gat-edges": "GAT, 8 features of edges", "gatv2-edges": "GATv2, 8 features of edges",
             "transformer-edges": "TransformerConv, 8 features of edges", "gine": "GINE, 8 features of edges"}

    def entry(graph, model, form):
        e = measured("layers", graph=graph, device=device, model=model, form=form)
        return e, failure(e) if "failed" in e else spread(e, digits)

    for model, name in names.items():
        row = []
        for graph in graphs:
            (ours, text), (theirs, other) = (entry(graph, model, form) for form in ("plait", "edge_index"))
            ratio = "" if "failed" in theirs else f", {theirs.median_ms / ours.median_ms:.1f}"
            row += [text, other + ratio]
        yield name, *row


table("edge-layers-cpu", "| | plait.nn | PyG, edge_index")(
    lambda measured: edge_layers(measured, "cpu", ["e"], 0))
table("edge-layers-cuda", "| | quarter: plait.nn | PyG, edge_index | whole: plait.nn | PyG, edge_index")(
    lambda measured: edge_layers(measured, "cuda", ["quarter", "whole"], 1))


@table("read-mtx", "reader | ms (least - most) | ratio")
def read_mtx(measured):
    plait = measured("read-mtx", reader="plait")
    yield "Plait", spread(plait, 0, "-"), "1"
    for name, reader in {"fast_matrix_market": "fast_matrix_market", "SciPy": "scipy"}.items():
        e = measured("read-mtx", reader=reader)
        yield f"{name} {e.version}", spread(e, 0, "-"), f"{e.median_ms / plait.median_ms:.2f}"


@table("read", "format | MB | plain | NumPy | parse | whole | parse / plain | parse / NumPy")
def read(measured):
    names = {".graph": "`.graph` (undirected)", "_beg_pos.bin": "MGG"}
    def ratio(x):
        return f"{x:.2f}" if x < 2 else f"{x:.1f}" if x < 10 else f"{x:.0f}"
    for ending in (".mtx", ".graph", ".adj", ".sg", ".wsg", "_beg_pos.bin"):
        plain, numpy, parse, whole = (measured("read", format=ending, step=step)
                                      for step in ("plain", "numpy", "parse", "whole"))
        yield (names.get(ending, f"`{ending}`"), f"{plain.mb:.1f}", f"{plain.median_ms:.1f}",
               f"{numpy.median_ms:.1f}", three(parse.median_ms), three(whole.median_ms),
               ratio(parse.median_ms / plain.median_ms), ratio(parse.median_ms / numpy.median_ms))


# --- accuracy ---


PUBLIC = {"Cora": "cora", "Citeseer": "citeseer", "Amazon-photo": "amazon-photo", "Coauthor-CS": "coauthor-cs"}


def accuracy_cells(entry):
    return f"{entry.mean:.2f}", f"{entry.deviation:.2f}", f"{entry.least:.2f}"


@table("accuracy", "graph | mean of 10 seeds | standard deviation | least")
def accuracy(measured):
    for name, graph in PUBLIC.items():
        split = "public split" if name in ("Cora", "Citeseer") else "20 per class"
        yield f"{name}, {split}", *accuracy_cells(
            measured("accuracy", graph=graph, model="gcn", normalize="auto"))


@table("accuracy-models", "graph | model | mean | standard deviation | least")
def accuracy_models(measured):
    for name, model in (("Cora", "gat"), ("Citeseer", "gat"), ("Cora", "sage")):
        yield name, model, *accuracy_cells(
            measured("accuracy", graph=PUBLIC[name], model=model, normalize="auto"))


@table("accuracy-normalize", "graph | words per vertex | `rows` | `unit` | `none`")
def accuracy_normalize(measured):
    for name, words in {"Cora": 18, "Citeseer": 32, "Coauthor-CS": 60, "Amazon-photo": 259}.items():
        def cell(normalize, name=name):
            e = measured("accuracy", graph=PUBLIC[name], model="gcn", normalize=normalize)
            return f"{e.mean:.2f}" + ("" if e.seeds == 10 else f" ({e.seeds} seeds)")
        yield name, f"{words}", cell("rows"), cell("unit"), cell("none") if words > 50 else ""


@table("accuracy-wire", "graph | rows as fp32 | rows as bf16 | difference of the means")
def accuracy_wire(measured):
    for name, graph in PUBLIC.items():
        fp32, bf16 = (measured("accuracy", graph=graph, model="gcn", normalize="auto", ranks=2, wire=wire)
                      for wire in ("fp32", "bf16"))
        yield (name, *(f"{e.mean:.2f} ({e.deviation:.2f})" for e in (fp32, bf16)),
               f"{bf16.mean - fp32.mean:+.2f}")


# --- sampling and gathering ---


@table("sample-cuda", "fan-outs | targets | ms of a batch | G edges/s | with two batches under way")
def sample_cuda(measured):
    for fanouts, targets in product(("30,30,30", "10,10,10", "15,10,5"), ("newest", "all", "disjoint")):
        entry = measured("sample-cuda", fanouts=fanouts, targets=targets, batch=512, scale=1.0)
        yield (fanouts, targets, spread(entry, 3), f"{entry.g_edges_s:.1f}", f"{entry.g_edges_s_two:.1f}")


@table("cooperative", "partition | each rank for itself | together | ratio | communication")
def cooperative(measured):
    for partition in ("edges", "metis", "hash"):
        alone, together = (measured("cooperative-epoch", way=way, partition=partition) for way in ("alone", "cooperative"))
        yield (partition, spread(alone, 0), spread(together, 0), f"{alone.median_ms / together.median_ms:.2f}",
               f"{100 * alone.comm_share:.0f}%, {100 * together.comm_share:.0f}%")


@table("gather-zipf", "bytes of a row | uniform, GB/s | Zipf(1.0) | each remote row once | hot rows kept")
def gather_zipf(measured):
    for size in (64, 128, 400, 1024, 4096):
        cells = []
        for source in ("all", "zipf", "distinct", "hot"):
            entry = measured("gather", gpus=2, bytes=size, **{"from": source})
            cells.append(f"{entry.median_gb_s:.0f}")
        yield size, *cells


@table("gather", "bytes of a row | rows of the GPU itself, GB/s")
def gather(measured):
    for size in (4, 16, 64, 128, 256, 400, 512, 1024, 4096):
        yield size, spread(measured("gather", gpus=1, bytes=size, **{"from": "own"}), 0, unit="gb_s")


for name, (columns, rows_of) in scaling_tables.TABLES.items():
    table(name, columns)(rows_of)
