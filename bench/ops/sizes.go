package main

import (
	"fmt"
	"strconv"
	"strings"
)

// size is the meaning of the letters in recipes.
type size struct {
	name    string
	letters map[string]int
	awkward bool
	own     map[string]string // recipes that take the place of those of ops in this size
	recipe  string            // takes the place of an op's, unless ""
}

// givenSize is the size of an op whose arguments are given. It is named by them.
func givenSize(recipe string) size {
	return size{name: recipe, letters: sizes[1].letters, recipe: recipe}
}

// sizes: rows r and columns c of what has no structure, n of square matrices, q of matrices that are
// decomposed, b of batches, k of channels, s of images, t of sequences, v of vocabularies.
var sizes = []size{
	{name: "cache", letters: map[string]int{"r": 64, "c": 256, "n": 100, "q": 24, "b": 2, "k": 16, "s": 14, "t": 32, "v": 1000}},
	{name: "middle", letters: map[string]int{"r": 512, "c": 1024, "n": 256, "q": 64, "b": 4, "k": 32, "s": 28, "t": 128, "v": 16000}},
	{name: "memory", letters: map[string]int{"r": 1024, "c": 2048, "n": 1024, "q": 160, "b": 8, "k": 64, "s": 56, "t": 256, "v": 32000}},
	{name: "awkward", letters: map[string]int{"r": 509, "c": 1021, "n": 257, "q": 61, "b": 3, "k": 24, "s": 29, "t": 77, "v": 10007}, awkward: true},
	{name: "short", letters: map[string]int{"r": 100003, "c": 5, "n": 7, "q": 5, "b": 256, "k": 64, "s": 7, "t": 6, "v": 50}, own: ofShort},
	{name: "long", letters: map[string]int{"r": 3, "c": 300007, "n": 383, "q": 33, "b": 1, "k": 8, "s": 255, "t": 1021, "v": 11}, own: ofLong},
}

// usual is how many of the sizes are measured unless others are asked for.
const usual = 4

// ofShort are the recipes of ops that take more columns than there are, whose results have the square
// of the rows, or whose products have short lines otherwise.
var ofShort = map[string]string{
	"addmm":                 "self=r,c mat1=r,c mat2=c,c",
	"cdist":                 "x1=1501,c x2=1499,c",
	"eye":                   "n=r m=c",
	"fractional_max_pool2d": "self=b,k,s,s kernel_size=2,2 output_size=3,3 random_samples=b,k,2:unit",
	"fractional_max_pool3d": "self=b,4,s,s,8 kernel_size=2,2,2 output_size=3,3,3 random_samples=b,4,3:unit",
	"index_select":          "index=c:i64<c dim=1",
	"inner":                 "self=1501,c other=1499,c",
	"kthvalue":              "k=2",
	"linear":                "input=r,c weight=8,c bias=8",
	"mm":                    "self=r,c mat2=c,c",
	"narrow":                "dim=1 start=1 length=3",
	"pdist":                 "self=1501,c",
	"stft":                  "self=b,r n_fft=16 center=false return_complex=true",
	"topk":                  "k=2",
}

// ofLong are the recipes of ops whose usual ones have no long lines.
var ofLong = map[string]string{
	"addmm":  "self=r,r mat1=r,c mat2=c,r",
	"cdist":  "x1=r,c x2=r,c",
	"linear": "input=r,c weight=8,c bias=8",
	"mm":     "self=r,c mat2=c,r",
	"pdist":  "self=r,c",
}

func sizeOf(name string) (size, error) {
	for _, s := range sizes {
		if s.name == name {
			return s, nil
		}
	}
	return size{}, fmt.Errorf("there is no size %q", name)
}

// number reads a product of letters and numbers, such as 4*k.
func (s size) number(text string) (int, error) {
	n := 1
	for f := range strings.SplitSeq(text, "*") {
		v, ok := s.letters[f]
		if !ok {
			var err error
			if v, err = strconv.Atoi(f); err != nil {
				return 0, fmt.Errorf("%q is neither a number nor a size", f)
			}
		}
		n *= v
	}
	return n, nil
}

// numbers reads products with commas between them.
func (s size) numbers(text string) ([]int, error) {
	list := []int{}
	if text == "" {
		return list, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		n, err := s.number(part)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, nil
}
