// Package onnx loads models of the Open Neural Network Exchange as lazy programs: no compiler, no
// cgo and no runtime of another project take part.
//
//	m, err := onnx.Load(ctx, "model.onnx")
//	out, err := m.Call(ctx, x)                  // records; nothing has run yet
//	loss := loris.CrossEntropy(out[0], y)
//	grads := loris.Grad(loss, vars...)          // it trains: floating initialisers are Variables
//
// Opsets 1 to 25 of the default domain are known, ops of other domains where the model brings their
// functions. Shape computations (Shape, Gather, Concat, Reshape and the like) are done while
// recording, for the sizes of the inputs at hand; loops with a known count are written out. Where a
// size, a branch or a count depends on data, the call computes what it depends on first, which
// syncs: [Model.Call] says how to learn where.
//
// Types that Loris lacks are held in wider ones: u16 as i32, u32 and u64 as i64 (a u64 by its
// bits), 4- and 2-bit integers as u8 and i8, the 8-bit floats without a negative zero, f8e8m0 and
// f4e2m1 as f32. Results are brought back to the type's range after every op. Strings, maps and
// images are refused by name.
package onnx
