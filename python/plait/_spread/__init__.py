"""Models over the rows of all ranks: layers of PyTorch Geometric and of torch are replaced, or compute by their own code
on this rank's piece of the graph."""
