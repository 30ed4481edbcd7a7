// Package dist lets processes compute together: groups of ranks, collectives as ops of lazy programs,
// and the engines that move elements between the ranks.
//
//	err := local.Run(ctx, 4, func(ctx context.Context, world *dist.Group) error {
//		session, err := world.Session()      // its programs may use collectives
//		…
//		g := world.AllReduce(grad, dist.Mean) // recorded like any op, run with the step
//	})
//
// Every rank runs the same program on data of its own. Before a run with collectives the ranks compare
// what they are about to do; one that differs is a *MismatchError on all of them, which names the op,
// the shapes and the line of two ranks, instead of a hang. A rank that ends, fails or does not come
// within the limit is a *RankError on all others; after that the group is of no more use.
//
// Elements are added in a fixed tree over the ranks, so sums are the same bits in each run. Package
// dist/local has n ranks in one process, and defines what engines do.
package dist
