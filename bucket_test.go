package loris

import (
	"errors"
	"slices"
	"testing"
)

func TestBuckets(t *testing.T) {
	for _, c := range []struct {
		name   string
		bucket Bucket
		sizes  []int // 0, 1, 7, 8, 9, 33 become
	}{
		{"powers", BucketPowers(4), []int{4, 4, 8, 8, 16, 64}},
		{"steps", BucketSteps(8), []int{8, 8, 8, 8, 16, 40}},
		{"sizes", BucketSizes(40, 1, 8), []int{1, 1, 8, 8, 40, 40}},
	} {
		var got []int
		for _, n := range []int{0, 1, 7, 8, 9, 33} {
			got = append(got, c.bucket(n))
		}
		if !slices.Equal(got, c.sizes) {
			t.Errorf("%s: %v, want %v", c.name, got, c.sizes)
		}
	}
}

func TestPadded(t *testing.T) {
	s := newSession(t)
	x, mask := Padded(s.With(), BucketSteps(3), []float32{1, 2, 3, 4}, -1, 9, 2, 2)
	got, err := x.Float32s(t.Context())
	if want := []float32{1, 2, 9, 3, 4, 9}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	real, err := mask.Bools(t.Context())
	if want := []bool{true, true, false}; err != nil || !slices.Equal(real, want) {
		t.Errorf("the mask is %v, %v, want %v", real, err, want)
	}
	if x.Dim(0) != 2 || x.Dim(1) != 3 {
		t.Errorf("the shape is %v", x.Shape())
	}
}

func TestMistakesInBuckets(t *testing.T) {
	m := newSession(t).With()
	for _, c := range []struct {
		name string
		want error
		fn   func()
	}{
		{"powers of 0", ErrArg, func() { BucketPowers(0) }},
		{"steps of -1", ErrArg, func() { BucketSteps(-1) }},
		{"beyond the sizes", ErrShape, func() { BucketSizes(4, 8)(9) }},
		{"too few elements", ErrShape, func() { Padded(m, BucketSteps(2), []int32{1}, 0, 0, 2) }},
		{"no such dimension", ErrIndex, func() { Padded(m, BucketSteps(2), []int32{1}, 1, 0, 1) }},
	} {
		if err := Try(c.fn); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}
