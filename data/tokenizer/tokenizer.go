// Package tokenizer turns texts into the numbers of tokens, and back.
//
//	tk, err := tokenizer.Open("tokenizer.json") // of a model from a hub
//	ids, err := tk.Encode("The café")
//	batch, mask, err := tokenizer.Batch(tk, sentences, 256)
//
// Files are read by github.com/sugarme/tokenizer. It would end the process, or take much memory, for
// added tokens of many bytes and normalizers that make texts many times as long: such files are
// errors. Tokenizer is an interface for other libraries.
package tokenizer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/data"
)

// Tokenizer turns texts into the numbers of tokens, and back. Several goroutines may use one.
type Tokenizer interface {
	// Encode returns the tokens of a text, with those that its model wants at the ends.
	Encode(text string) ([]int64, error)
	// Decode returns the text of tokens, without those at the ends. A number that is no token's is an
	// error.
	Decode(tokens []int64) (string, error)
	// Size returns the number of tokens that there are: numbers are from 0 to Size()-1.
	Size() int
}

// Characters returns a tokenizer whose tokens are the characters of a text, in their order in
// Unicode. Encode of a text that has another one is an error that names it.
func Characters(text string) Tokenizer {
	runes := slices.Compact(slices.Sorted(func(yield func(rune) bool) {
		for _, r := range text {
			if !yield(r) {
				return
			}
		}
	}))
	return characters(runes)
}

type characters []rune

func (c characters) Size() int { return len(c) }

func (c characters) Encode(text string) ([]int64, error) {
	out := make([]int64, 0, len(text))
	for at, r := range text {
		i, ok := slices.BinarySearch(c, r)
		if !ok {
			return nil, fmt.Errorf("tokenizer: %q at byte %d is none of the %d characters", r, at, len(c))
		}
		out = append(out, int64(i))
	}
	return out, nil
}

func (c characters) Decode(tokens []int64) (string, error) {
	var b strings.Builder
	for i, t := range tokens {
		if err := check(c, i, t); err != nil {
			return "", err
		}
		b.WriteRune(c[t])
	}
	return b.String(), nil
}

// check returns an error for a number that is no token's.
func check(t Tokenizer, i int, token int64) error {
	if token < 0 || token >= int64(t.Size()) {
		return fmt.Errorf("tokenizer: token %d is %d, not from 0 to %d", i, token, t.Size()-1)
	}
	return nil
}

// Batch returns the tokens of texts as an i64 array [texts, length], as long as the longest, filled
// up with 0, and a mask of the same shape that is 1 where a token is. Of a text of more than max
// tokens it has the first max-1 and the last, since models that read whole sentences want the token
// at the end. No text, or a max below 2, is an error wrapping ErrArg.
func Batch(t Tokenizer, texts []string, max int) (tokens, mask data.Array, err error) {
	if len(texts) == 0 || max < 2 {
		return tokens, mask, fmt.Errorf("tokenizer: %w: a batch of %d texts of at most %d tokens", loris.ErrArg, len(texts), max)
	}
	rows := make([][]int64, len(texts))
	length := 0
	for i, text := range texts {
		ids, err := t.Encode(text)
		if err != nil {
			return tokens, mask, fmt.Errorf("text %d: %w", i, err)
		}
		if n := len(ids); n > max {
			ids = append(ids[:max-1], ids[n-1])
		}
		rows[i] = ids
		if len(ids) > length {
			length = len(ids)
		}
	}
	ids, here := make([]int64, len(rows)*length), make([]int64, len(rows)*length)
	for i, row := range rows {
		copy(ids[i*length:], row)
		for j := range row {
			here[i*length+j] = 1
		}
	}
	return data.Of(ids, len(rows), length), data.Of(here, len(rows), length), nil
}
