// Package parallel has ways to divide the training of one model among ranks, on top of package dist:
//
//   - Optimizer divides the state and the update of an optimiser (ZeRO, stages 1 and 2), Param a parameter
//     itself (stage 3).
//   - Layers makes layers whose weights are divided (tensor parallelism).
//   - SequenceAttention attends over a sequence that is divided.
//   - Pipeline runs the layers of a model on one rank after the other.
//   - Checkpoint saves what is divided as whole tensors by their names, for any number of ranks.
//
// Plain data parallelism is dist.Group.Average. Forms combine by groups: those of dist.Group.Split.
package parallel
