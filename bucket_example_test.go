package loris_test

import (
	"context"
	"fmt"

	"github.com/loris-ml/loris"
)

// Sentences of all lengths are padded to a few sizes: of twenty lengths here only three need a
// compilation. The mask keeps the padding out of the mean.
func ExampleBucket() {
	ctx := context.Background()
	s, err := loris.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close(ctx)
	lengths := loris.BucketPowers(8)
	for n := 1; n <= 20; n++ {
		sentence := make([]float32, n)
		for i := range sentence {
			sentence[i] = float32(i)
		}
		x, mask := loris.Padded(s.With(), lengths, sentence, 0, 0)
		mean := x.Mul(mask).Sum().Div(mask.Sum())
		if n%10 == 0 {
			fmt.Println(mean.Item(ctx))
		}
		if err := s.MarkStep(ctx); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(s.Report().Compiles, "compilations")
	// Output:
	// 4.5 <nil>
	// 9.5 <nil>
	// 3 compilations
}
