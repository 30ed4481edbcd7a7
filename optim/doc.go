// Package optim trains the parameters of modules: optimisers with PyTorch's
// formulas and defaults, schedules of the learning rate, gradient clipping, and
// checkpoints from which training goes on as if it had never stopped.
//
//	opt := optim.NewAdamW(m.Params(), 1e-3)
//	opt.SetSchedule(optim.Warmup(100, optim.Cosine(1e-3, 0, 10_000)))
//	for range steps {
//		loss := logits(m, x).CrossEntropy(y)
//		opt.Minimize(loss)
//		if err := loris.MarkStep(ctx); err != nil { … }
//	}
//
// Updates are part of the graph of the training step. Rates, bias corrections and all
// other numbers are parameters of that graph, so their changes never recompile it.
//
// Group gives parameters rates and decays of their own, an Accumulator sums up the gradients of
// several batches, an EMA averages weights, MasterWeights trains narrow parameters with f32 values
// behind them, and a LossScaler keeps f16 gradients from vanishing. All of them may be part of a
// function given to loris.Compile.
//
// Mistakes in setting up or recording panic with a *loris.OpError, as ops do.
package optim
