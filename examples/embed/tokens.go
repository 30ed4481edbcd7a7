package main

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/sugarme/tokenizer"
	"github.com/sugarme/tokenizer/pretrained"
	"golang.org/x/text/unicode/norm"
)

// Tokens are sentences as the model takes them: the numbers of their word
// pieces, row by row, padded to the longest, and a mask that is 1 where a piece
// is and 0 where padding is.
type Tokens struct {
	IDs, Mask       []int64
	Rows, MaxLength int
}

// maxPieces is the length to which the model was trained; the rest of a longer
// sentence is cut off, as the published model does.
const maxPieces = 256

// Tokenise splits sentences into word pieces with a tokenizer.json file.
func Tokenise(path string, sentences []string) (Tokens, error) {
	tk, err := pretrained.FromFile(path)
	if err != nil {
		return Tokens{}, fmt.Errorf("read the tokenizer %s: %w", path, err)
	}
	// The file asks for a fixed length of 128; here each call is as long as its
	// longest sentence.
	tk.WithPadding(nil)
	tk.WithTruncation(nil)
	if len(sentences) == 0 {
		return Tokens{}, errors.New("no sentences")
	}
	rows := make([][]int, len(sentences))
	t := Tokens{Rows: len(sentences)}
	for i, s := range sentences {
		e, err := encode(tk, s)
		if err != nil {
			return Tokens{}, fmt.Errorf("tokenise %q: %w", s, err)
		}
		rows[i] = e
		t.MaxLength = max(t.MaxLength, len(e))
	}
	t.IDs, t.Mask = make([]int64, t.Rows*t.MaxLength), make([]int64, t.Rows*t.MaxLength)
	for i, row := range rows {
		for j, id := range row {
			t.IDs[i*t.MaxLength+j], t.Mask[i*t.MaxLength+j] = int64(id), 1
		}
	}
	return t, nil
}

func encode(tk *tokenizer.Tokenizer, s string) ([]int, error) {
	e, err := tk.EncodeSingle(stripAccents(s), true)
	if err != nil {
		return nil, err
	}
	ids := e.Ids
	if len(ids) > maxPieces {
		ids = append(ids[:maxPieces-1:maxPieces-1], ids[len(ids)-1])
	}
	return ids, nil
}

// stripAccents does what the model's vocabulary expects of lower-cased text and
// the library leaves out when the file does not ask for it by name: letters
// without their accents.
func stripAccents(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFD.String(s))
}
