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

// Bounds of what the library is given. It makes a regular expression of each added token, which ends
// the process where it is too large, and takes hundreds of bytes for each of the token.
const (
	maxFile   = 256 << 20
	maxToken  = 1 << 10
	maxTokens = 1 << 20 // of the added ones together
	maxGrowth = 64      // of a text in its normalizers
)

// settings are the parts of a file that are looked at before the library reads it.
type settings struct {
	AddedTokens []struct {
		Content string `json:"content"`
	} `json:"added_tokens"`
	Normalizer normalizer `json:"normalizer"`
}

// check refuses what would end the process or take memory out of proportion to the file.
func (s *settings) check() error {
	total := 0
	for i, t := range s.AddedTokens {
		if len(t.Content) > maxToken {
			return fmt.Errorf("added token %d has %d bytes, and may have %d", i, len(t.Content), maxToken)
		}
		if total += len(t.Content); total > maxTokens {
			return fmt.Errorf("the added tokens have more than %d bytes together", maxTokens)
		}
	}
	if s.Normalizer.growth() > maxGrowth {
		return fmt.Errorf("the normalizers may make a text more than %d times as long", maxGrowth)
	}
	return nil
}

// normalizer is the part of a file that says how texts are changed before.
type normalizer struct {
	Type         string       `json:"type"`
	Lowercase    bool         `json:"lowercase"`
	StripAccents *bool        `json:"strip_accents"`
	Normalizers  []normalizer `json:"normalizers"`
	Pattern      struct {
		Text string `json:"String"`
	} `json:"pattern"`
	Content string `json:"content"`
	Prepend string `json:"prepend"`
}

// growth returns how many times as long a text may become, more than maxGrowth standing for all that
// is more.
func (n normalizer) growth() int {
	times := 1
	switch n.Type {
	case "Replace":
		matched := max(1, len(n.Pattern.Text)) // an expression may match one byte
		times = max(1, (len(n.Content)+matched-1)/matched)
	case "Prepend":
		times = 1 + len(n.Prepend)
	}
	for _, inner := range n.Normalizers {
		times = min(times, maxGrowth+1) * min(inner.growth(), maxGrowth+1)
	}
	return min(times, maxGrowth+1)
}

// stripsAccents reports whether accents go although the file does not say so: those of BERT's kind
// that lower letters do by default, which the library leaves out.
func (n normalizer) stripsAccents() bool {
	if n.Type == "BertNormalizer" {
		return n.Lowercase && n.StripAccents == nil
	}
	for _, inner := range n.Normalizers {
		if inner.stripsAccents() {
			return true
		}
	}
	return false
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
