// Misuse does not compile: each line marked with "want" gives an op an option that
// it does not take, or one of another type.
package main

import "github.com/loris-ml/loris"

func main() {
	x := loris.Zeros(2, 3)
	x.Relu(loris.Dim(1)) // want
	x.Sum(loris.Dim(1), loris.Keepdim(true))
	x.Sum(loris.Stride(5))  // want
	x.Sum(loris.Dim("one")) // want
	x.Sum(1)                // want
	x.Add(x, loris.Alpha(2))
	x.Add(x, loris.Dim(1)) // want
	x.Div(x, loris.RoundingMode("floor"))
	x.Div(x, loris.Alpha(2)) // want
	x.Norm(loris.Ord(1), loris.Dim(-1))
	x.LinalgVectorNorm(loris.Ord(1), loris.As(loris.F64))
	x.Norm(loris.As(loris.F64)) // want
	loris.Cat([]*loris.Tensor{x, x}, loris.Dim(1))
	loris.Cat([]*loris.Tensor{x, x}, loris.Keepdim(true)) // want
	loris.With(loris.As(loris.F64), loris.On(loris.CPU))
	loris.With(loris.Dim(1)) // want

	options := []loris.SumOption{loris.Dim(1), loris.As(loris.F64)}
	x.Sum(options...)
	x.Mean(options...) // want
}
