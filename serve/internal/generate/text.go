package generate

import (
	"strings"
	"unicode/utf8"

	"github.com/loris-ml/loris/data/tokenizer"
	"github.com/loris-ml/loris/serve/internal/inference"
)

// text turns tokens into text as they come. What may still change is held back: bytes of
// a character that is not complete, and what may be the beginning of a text to stop at.
type text struct {
	tokenizer tokenizer.Tokenizer
	stop      []string
	emit      func(string) error

	before string  // the text of the request's last tokens
	given  int     // how many these are
	ids    []int64 // these tokens, and those that were generated
	done   strings.Builder
	sent   int // bytes of the generated text that are in done
	whole  string
}

// maxBefore is how many tokens of the request stand before the others when these become
// text: it depends on them whether a space goes before a word.
const maxBefore = 8

func newText(t tokenizer.Tokenizer, ids []int64, stop []string, emit func(string) error) *text {
	last := append([]int64{}, ids[max(len(ids)-maxBefore, 0):]...)
	x := &text{tokenizer: t, stop: stop, emit: emit, ids: last, given: len(last)}
	if before, err := t.Decode(last); err == nil {
		x.before = before
	}
	return x
}

// send adds to what is done, and emits it.
func (x *text) send(s string) error {
	if s == "" {
		return nil
	}
	x.done.WriteString(s)
	if x.emit == nil {
		return nil
	}
	return x.emit(s)
}

// add adds a token. stopped says that a text to stop at has come; it is no part of what
// is sent.
func (x *text) add(token int64) (stopped bool, err error) {
	x.ids = append(x.ids, token)
	all, err := x.tokenizer.Decode(x.ids)
	if err != nil {
		return false, inference.Errorf(inference.Internal, "token %d cannot become text: %w", token, err)
	}
	generated, ok := strings.CutPrefix(all, x.before)
	if !ok { // a tokenizer whose texts depend on what follows
		if generated, err = x.tokenizer.Decode(x.ids[x.given:]); err != nil {
			return false, inference.Errorf(inference.Internal, "token %d cannot become text: %w", token, err)
		}
	}
	x.whole = generated
	end := len(generated)
	for _, s := range x.stop {
		if at := strings.Index(generated, s); at >= 0 && at < end {
			end, stopped = at, true
		}
	}
	if stopped {
		x.whole = generated[:end]
		return true, nil
	}
	sure := strings.TrimRight(generated, string(utf8.RuneError))
	sure = sure[:len(sure)-held(sure, x.stop)]
	if len(sure) <= x.sent {
		return false, nil
	}
	from := x.sent
	x.sent = len(sure)
	return false, x.send(sure[from:])
}

// held returns how many bytes at the end of s may be the beginning of a text to stop at.
func held(s string, stop []string) int {
	most := 0
	for _, t := range stop {
		for n := min(len(t)-1, len(s)); n > most; n-- {
			if strings.HasSuffix(s, t[:n]) {
				most = n
			}
		}
	}
	return most
}

// end sends what was held back, and returns all that was sent.
func (x *text) end() (string, error) {
	if len(x.whole) > x.sent {
		if err := x.send(x.whole[x.sent:]); err != nil {
			return "", err
		}
	}
	return x.done.String(), nil
}
