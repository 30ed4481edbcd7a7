package ref

import "github.com/loris-ml/loris/internal/collective"

// collect runs a collective and waits for it.
func collect(c *call) {
	comm, err := collective.From(c.ctx)
	if err == nil {
		err = comm.Run(c.ctx, c.use, c.out[0].data, c.in[0].data)
	}
	if err != nil {
		panic(err)
	}
}
