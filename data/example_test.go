package data_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/data"
)

// A training program is stopped in the middle of an epoch; another goes on where it was.
func Example() {
	ctx := context.Background()
	x := data.Of([]float32{0, 0, 1, 1, 2, 2, 3, 3, 4, 4}, 5, 2)
	y := data.Of([]int64{0, 1, 2, 3, 4})
	ds, err := data.Rows(x, y)
	if err != nil {
		fmt.Println(err)
		return
	}
	l := data.NewLoader(ds, 2, data.Stack, data.Shuffle(1))
	defer l.Close()
	for batch, err := range l.Epoch(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		t := batch.Tensors(loris.With())
		labels, err := loris.Read[int64](ctx, t[1])
		fmt.Println(t[0].Shape(), labels, err)
		break
	}
	state, err := json.Marshal(l.State())
	if err != nil {
		fmt.Println(err)
		return
	}

	var s data.State
	if err := json.Unmarshal(state, &s); err != nil {
		fmt.Println(err)
		return
	}
	resumed := data.NewLoader(ds, 2, data.Stack, data.Shuffle(1))
	defer resumed.Close()
	if err := resumed.Resume(s); err != nil {
		fmt.Println(err)
		return
	}
	for batch, err := range resumed.Epoch(ctx) {
		labels, _ := data.Values[int64](batch[1])
		fmt.Println(batch[0].Shape, labels, err)
	}
	// Output:
	// f32[2,2] [2 1] <nil>
	// f32[2,2] [4 3] <nil>
	// f32[1,2] [0] <nil>
}
