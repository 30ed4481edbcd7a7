package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"unicode"

	"github.com/sugarme/tokenizer"
	"github.com/sugarme/tokenizer/pretrained"
	"golang.org/x/text/unicode/norm"
)

// Open reads a tokenizer.json file, which Hugging Face's models have beside their weights. The
// lengths to which it asks that texts be cut or filled up are left to Batch.
func Open(path string) (Tokenizer, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxFile {
		err = fmt.Errorf("%s has %d bytes, and may have %d", path, info.Size(), maxFile)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	t, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %s: %w", path, err)
	}
	return t, nil
}

// file is a tokenizer of the library. Its models keep what they have met, so one goroutine uses it at
// a time.
type file struct {
	mu           sync.Mutex
	tokenizer    *tokenizer.Tokenizer
	size         int
	stripAccents bool
}

func parse(text []byte) (t *file, err error) {
	defer recovered(&err)
	var settings settings
	if err := json.Unmarshal(text, &settings); err != nil {
		return nil, err
	}
	if err := settings.check(); err != nil {
		return nil, err
	}
	tk, err := pretrained.FromReader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	tk.WithPadding(nil)
	tk.WithTruncation(nil)
	return &file{tokenizer: tk, size: tk.GetVocabSize(true), stripAccents: settings.Normalizer.stripsAccents()}, nil
}

// recovered makes a panic of the library an error: it has some for files that miss a part.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the file cannot be used: %v", p)
	}
}

func (f *file) Size() int { return f.size }

func (f *file) Encode(text string) (ids []int64, err error) {
	defer recovered(&err)
	if f.stripAccents {
		text = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Mn, r) {
				return -1
			}
			return r
		}, norm.NFD.String(text))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	e, err := f.tokenizer.EncodeSingle(text, true)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	ids = make([]int64, len(e.Ids))
	for i, id := range e.Ids {
		ids[i] = int64(id)
	}
	return ids, nil
}

func (f *file) Decode(tokens []int64) (text string, err error) {
	defer recovered(&err)
	ids := make([]int, len(tokens))
	for i, t := range tokens {
		if err := check(f, i, t); err != nil {
			return "", err
		}
		ids[i] = int(t)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tokenizer.Decode(ids, true), nil
}
