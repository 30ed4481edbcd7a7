// Package escape makes text of strangers safe to print: a terminal obeys control
// characters, and names in files may hold any.
package escape

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s with everything but printable text, line ends and tabs written as
// \u001b or, for bytes that are no UTF-8, \xff.
func Text(s string) string {
	i := strings.IndexFunc(s, hidden)
	if i < 0 {
		return s
	}
	var b strings.Builder
	b.WriteString(s[:i])
	for s = s[i:]; s != ""; {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case !hidden(r):
			b.WriteString(s[:n])
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		s = s[n:]
	}
	return b.String()
}

// hidden reports whether a rune is not shown but does something: control characters of
// both tables, and those that change the direction of text or have no width. The rune
// of bytes that are no UTF-8 counts, too.
func hidden(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case r < 0x7f:
		return r < ' '
	}
	return r == utf8.RuneError || unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Writer passes text on as [Text] returns it. A character may be split between writes.
type Writer struct {
	w    io.Writer
	rest []byte // the beginning of a character
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write passes p on. The error is that of the writer below, after which nothing is known
// of how much was written.
func (w *Writer) Write(p []byte) (int, error) {
	text := append(w.rest, p...)
	end := len(text)
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if at := len(text) - back; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				end = at
			}
			break
		}
	}
	w.rest = append([]byte(nil), text[end:]...)
	if _, err := w.w.Write([]byte(Text(string(text[:end])))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes the beginning of a character that did not end.
func (w *Writer) Flush() error {
	if len(w.rest) == 0 {
		return nil
	}
	_, err := w.w.Write([]byte(Text(string(w.rest))))
	w.rest = nil
	return err
}
