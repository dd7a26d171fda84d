"""Graph convolution, its gradient and Adam in NumPy and SciPy, in double precision, from the papers:
Kipf and Welling (ICLR 2017) and Kingma and Ba (ICLR 2015). This is the oracle of plait train and
infer."""

import numpy as np
import scipy.sparse

from philox import philox_words


def load_archive(path):
    """Returns the arrays of a graph archive; sparse features as a matrix."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    if "x_data" in arrays:
        x = scipy.sparse.csr_array((arrays["x_data"].astype(float), arrays["x_indices"],
                                    arrays["x_indptr"]), shape=arrays["x_shape"])
        total = x.sum(axis=1)  # bags of words are divided by their length
        arrays["x"] = (scipy.sparse.diags_array(1 / np.where(total == 0, 1, total)) @ x).toarray()
    arrays["x"] = arrays["x"].astype(np.float64)
    return arrays


def propagation(arrays):
    """Returns D^-1/2 (A + I) D^-1/2: every vertex has one loop, of weight 1 or of its last loop's."""
    source, target = arrays["edge_index"].astype(np.int64)
    vertices = len(arrays["x"])
    weight = arrays.get("edge_weight", np.ones(len(source))).astype(np.float64)
    loop = np.ones(vertices)
    for edge in np.nonzero(source == target)[0]:
        loop[source[edge]] = weight[edge]
    weight = np.where(source == target, 0, weight)
    matrix = scipy.sparse.csr_array((weight, (target, source)), shape=(vertices, vertices))
    matrix = matrix + scipy.sparse.diags_array(loop)
    degree = matrix.sum(axis=1)
    root = scipy.sparse.diags_array(np.where(degree > 0, np.abs(degree) ** -0.5, 0))
    return (root @ matrix @ root).tocsr()


def dropout_mask(shape, seed, epoch, layer, p):
    """Draws by counters: the low one is the vertex, the high one epoch, layer and column."""
    vertices, width = shape
    vertex, block = np.meshgrid(np.arange(vertices), np.arange((width + 3) // 4), indexing="ij")
    high = np.uint64((epoch << 40) | (layer << 32)) | block.astype(np.uint64)
    words = philox_words(vertex.astype(np.uint64), seed ^ 0xD80D000000000001, high)
    words = np.moveaxis(words, 0, -1).reshape(vertices, -1)[:, :width]
    uniform = (words >> np.uint64(8)) * 2.0**-24
    return (uniform >= np.float32(p)) / (1 - p)


class Gcn:
    """Layers of weights with their gradients; `tensors` are named as in a checkpoint."""

    def __init__(self, tensors, arrays, kind="gcn"):
        self.layers = sum(name.startswith("convs.") and name.endswith("weight") for name in tensors)
        self.parameters = [tensors[f"convs.{layer}.{part}"].astype(np.float64)
                           for layer in range(self.layers) for part in ("lin.weight", "bias")]
        self.arrays = arrays
        identity = scipy.sparse.eye_array(len(arrays["x"]), format="csr")
        self.spread = propagation(arrays) if kind == "gcn" else identity

    def forward(self, masks=None):
        """Returns scores; keeps arrays for the gradient. `masks`: one per layer, for its input."""
        self.inputs, self.active, self.masks = [], [], masks
        h = self.arrays["x"]
        for layer in range(self.layers):
            weight, bias = self.parameters[2 * layer:2 * layer + 2]
            h = self.spread @ (h * masks[layer] if masks else h)
            self.inputs.append(h)
            h = h @ weight.T + bias
            if layer + 1 < self.layers:
                self.active.append(h > 0)
                h = np.maximum(h, 0)
        return h

    def loss_and_gradients(self, scores, vertices):
        """Returns the mean cross entropy over `vertices`, and gradients in the parameters' order."""
        labels = self.arrays["y"][vertices]
        shifted = scores[vertices] - scores[vertices].max(axis=1, keepdims=True)
        log_share = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        rows = np.arange(len(vertices))
        gradient = np.zeros_like(scores)
        gradient[vertices] = np.exp(log_share) / len(vertices)
        gradient[vertices, labels] -= 1 / len(vertices)
        gradients = []
        for layer in reversed(range(self.layers)):
            gradients[:0] = [gradient.T @ self.inputs[layer], gradient.sum(axis=0)]
            gradient = self.spread.T @ (gradient @ self.parameters[2 * layer])
            if self.masks:
                gradient = gradient * self.masks[layer]
            if layer > 0:
                gradient = gradient * self.active[layer - 1]
        return -log_share[rows, labels].mean(), gradients


class Adam:
    def __init__(self, parameters, rate, decay):
        """`decay`: one L2 penalty per parameter."""
        self.parameters, self.rate, self.decay = parameters, rate, decay
        self.first = [np.zeros_like(p) for p in parameters]
        self.second = [np.zeros_like(p) for p in parameters]
        self.steps = 0

    def step(self, gradients):
        self.steps += 1
        state = zip(self.parameters, gradients, self.first, self.second, self.decay)
        for p, g, m, v, decay in state:
            g = g + decay * p
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            p -= (self.rate * (m / (1 - 0.9**self.steps))
                  / (np.sqrt(v / (1 - 0.999**self.steps)) + 1e-8))


def train(model, epochs, *, rate=0.01, decay=5e-4, dropout=0.0, seed=0):
    """Returns the loss of every epoch. All layers but the last have an L2 penalty."""
    layers = model.layers
    decays = [decay if layer + 1 < layers else 0 for layer in range(layers) for _ in range(2)]
    adam = Adam(model.parameters, rate, decays)
    widths = [model.parameters[2 * layer].shape[1] for layer in range(layers)]
    vertices = len(model.arrays["x"])
    losses = []
    for epoch in range(epochs):
        masks = [dropout_mask((vertices, width), seed, epoch, layer, dropout)
                 for layer, width in enumerate(widths)] if dropout else None
        loss, gradients = model.loss_and_gradients(model.forward(masks), model.arrays["train"])
        adam.step(gradients)
        losses.append(loss)
    return losses
