// Package dist lets processes compute together: groups of ranks, collectives as ops of lazy programs,
// and the engines that move elements between the ranks.
//
//	world, err := dist.Init(ctx)                   // all processes that the launcher has started
//	session, err := world.Session()                // its programs may use collectives
//	…
//	grads := world.Average(loris.Grad(loss, w...)) // recorded like any op, run with the step
//	…
//	err = world.Close(ctx)
//	dist.Exit(0)
//
// Every rank runs the same program on data of its own. Before a run with collectives the ranks compare
// what they are about to do; one that differs is a *MismatchError on all of them, which names the op,
// the shapes and the line of two ranks, instead of a hang. A rank that ends, fails or does not come
// within the limit is a *RankError on all others; after that the group is of no more use: the program
// saves what it has and ends with ExitRestart, and its launcher starts it again.
//
// Elements are added in a fixed tree over the ranks: sums are the same bits in each run, and on any
// number of ranks if the work of a step is cut into the same shards (Group.Shards). Package dist/local has
// n ranks in one process, and defines what engines do. Package dist/mpi, a module of its own that a
// program imports for its effect, has MPI.
package dist
