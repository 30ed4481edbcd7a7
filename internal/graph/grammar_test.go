package graph

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

// expr is a part of a production of the grammar in docs/lir.md.
type expr struct {
	kind rune // '|' alternatives, ',' sequence, '[' may be missing, '{' repeated, '"' literal, 'N' name
	text string
	of   []*expr
}

// grammar reads the productions of docs/lir.md.
func grammar(t *testing.T) map[string]*expr {
	t.Helper()
	doc, err := os.ReadFile("../../docs/lir.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(doc), "```ebnf\n")
	text, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("docs/lir.md has no grammar")
	}
	words := strings.Fields(text) // in the document all tokens are apart
	productions := map[string]*expr{}
	for len(words) > 0 {
		name := words[0]
		if words[1] != "=" || productions[name] != nil {
			t.Fatalf("production %q", name)
		}
		words = words[2:]
		productions[name] = alternatives(&words)
		if words[0] != "." {
			t.Fatalf("%s ends at %q", name, words[0])
		}
		words = words[1:]
	}
	return productions
}

func alternatives(words *[]string) *expr {
	e := &expr{kind: '|', of: []*expr{sequence(words)}}
	for (*words)[0] == "|" {
		*words = (*words)[1:]
		e.of = append(e.of, sequence(words))
	}
	return e
}

func sequence(words *[]string) *expr {
	e := &expr{kind: ','}
	for !strings.Contains("| ] } ) .", (*words)[0]) {
		w := (*words)[0]
		*words = (*words)[1:]
		switch {
		case w == "[" || w == "{" || w == "(":
			inner := alternatives(words)
			if w != "(" {
				inner = &expr{kind: rune(w[0]), of: []*expr{inner}}
			}
			e.of = append(e.of, inner)
			*words = (*words)[1:]
		case w[0] == '"':
			e.of = append(e.of, &expr{kind: '"', text: strings.Trim(w, `"`)})
		default:
			e.of = append(e.of, &expr{kind: 'N', text: w})
		}
	}
	return e
}

// recogniser finds whether tokens are derived from a grammar.
type recogniser struct {
	productions map[string]*expr
	tokens      []token
}

// ends returns the positions at which a match of e that begins at a position may end.
func (r *recogniser) ends(e *expr, at int) map[int]bool {
	out := map[int]bool{}
	switch e.kind {
	case '|':
		for _, o := range e.of {
			for p := range r.ends(o, at) {
				out[p] = true
			}
		}
	case ',':
		out[at] = true
		for _, o := range e.of {
			next := map[int]bool{}
			for p := range out {
				for q := range r.ends(o, p) {
					next[q] = true
				}
			}
			out = next
		}
	case '[':
		out = r.ends(e.of[0], at)
		out[at] = true
	case '{':
		out[at] = true
		for work := []int{at}; len(work) > 0; {
			p := work[0]
			work = work[1:]
			for q := range r.ends(e.of[0], p) {
				if !out[q] {
					out[q] = true
					work = append(work, q)
				}
			}
		}
	case '"':
		if t := r.tokens[at]; (t.kind == tokPunct || t.kind == tokWord) && t.text == e.text {
			out[at+1] = true
		}
	case 'N':
		if p := r.productions[e.text]; p != nil {
			return r.ends(p, at)
		}
		if terminal(e.text, r.tokens[at]) {
			out[at+1] = true
		}
	}
	return out
}

// terminal reports whether a token is one of the table's.
func terminal(name string, t token) bool {
	switch name {
	case "Label":
		return t.kind == tokAt
	case "Value":
		return t.kind == tokValue
	case "String":
		return t.kind == tokString
	case "Number":
		return t.kind == tokNumber
	case "DType":
		_, err := ir.ParseDType(t.text)
		return t.kind == tokWord && err == nil
	case "Integer":
		_, err := strconv.Atoi(t.text)
		return t.kind == tokNumber && err == nil
	case "Word":
		return t.kind == tokWord
	case "Op":
		_, dtype := ir.ParseDType(t.text)
		return t.kind == tokWord && dtype != nil &&
			!slices.Contains([]string{"parameter", "true", "false", "True", "False", "None", "nan", "inf"}, t.text)
	}
	panic("the grammar has no " + name)
}

// accepts reports whether a text is a program of the grammar.
func accepts(productions map[string]*expr, src string) (ok bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, lexical := r.(*ParseError); !lexical {
				panic(r)
			}
			ok = false
		}
	}()
	l := lexer{src: src, line: 1, col: 1}
	r := &recogniser{productions: productions}
	for {
		t := l.next()
		r.tokens = append(r.tokens, t)
		if t.kind == tokEOF {
			return r.ends(productions["Program"], 0)[len(r.tokens)-1]
		}
	}
}

// syntactic reports whether a text is refused for its form, and not for what it means.
func syntactic(err error) bool {
	var pe *ParseError
	if !errors.As(err, &pe) {
		return false
	}
	for _, s := range []string{"expected", "unexpected", "a name must follow", "the string", "an argument by position follows", "a parameter has one name", "a list holds"} {
		if strings.HasPrefix(pe.Msg, s) {
			return true
		}
	}
	return false
}

// programTexts are the programs of the goldens and those that they are rewritten to.
func programTexts(t *testing.T) (texts []string) {
	t.Helper()
	files, err := filepath.Glob("testdata/*/*.lir")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d programs, %v", len(files), err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Parse(string(b))
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		low, _ := Optimize(p, Options{})
		texts = append(texts, string(b), p.String(), low.String())
	}
	return texts
}

func TestGrammarAcceptsPrograms(t *testing.T) {
	g := grammar(t)
	for _, text := range programTexts(t) {
		if !accepts(g, text) {
			t.Errorf("the grammar refuses\n%s", text)
		}
	}
}

// Where a token of a program is dropped, doubled or replaced, the reader and the grammar agree on
// whether it is still a program.
func TestGrammarAndReaderAgree(t *testing.T) {
	g := grammar(t)
	r := rand.New(rand.NewPCG(1, 2))
	others := strings.Fields(`( ) [ ] { } , = : %x %0 @p "s" 1 -2.5 true None f32 add return parameter program`)
	refused := 0
	texts := programTexts(t)
	for range 3000 {
		words := split(texts[r.IntN(len(texts))])
		if len(words) > 400 {
			continue
		}
		switch i := r.IntN(len(words)); r.IntN(3) {
		case 0:
			words = append(words[:i:i], words[i+1:]...)
		case 1:
			words = append(words[:i+1:i+1], words[i:]...)
		case 2:
			words[i] = others[r.IntN(len(others))]
		}
		text := strings.Join(words, " ")
		_, err := Parse(text)
		ok := accepts(g, text)
		if err == nil && !ok {
			t.Fatalf("the reader takes what the grammar refuses:\n%s", text)
		}
		// A result's type too few or too many is for the reader a matter of form.
		if ok && syntactic(err) && !strings.Contains(err.Error(), `found ":"`) && !typesCounted(err) {
			t.Fatalf("the grammar takes what the reader refuses: %v\n%s", err, text)
		}
		if !ok {
			refused++
		}
	}
	if refused < 500 {
		t.Errorf("only %d changes made a program malformed", refused)
	}
}

// typesCounted reports whether an error is about the number of the results' types.
func typesCounted(err error) bool {
	return strings.Contains(err.Error(), `found ","`) || strings.Contains(err.Error(), `expected ","`)
}

// split returns the tokens of a text as they are written.
func split(src string) (words []string) {
	l := lexer{src: src, line: 1, col: 1}
	for {
		l.skipSpace()
		from := l.pos
		if l.next().kind == tokEOF {
			return words
		}
		words = append(words, src[from:l.pos])
	}
}

// deriver writes random programs of the grammar.
type deriver struct {
	productions map[string]*expr
	r           *rand.Rand
	out         []string
}

func (d *deriver) derive(e *expr, depth int) {
	switch e.kind {
	case '|':
		d.derive(e.of[d.r.IntN(len(e.of))], depth)
	case ',':
		for _, o := range e.of {
			d.derive(o, depth)
		}
	case '[':
		if depth < 12 && d.r.IntN(2) == 0 {
			d.derive(e.of[0], depth)
		}
	case '{':
		for depth < 12 && d.r.IntN(3) == 0 {
			d.derive(e.of[0], depth)
		}
	case '"':
		d.out = append(d.out, e.text)
	case 'N':
		if p := d.productions[e.text]; p != nil && !(e.text == "Operand" && depth > 12) {
			d.derive(p, depth+1)
			return
		}
		d.out = append(d.out, d.terminal(e.text))
	}
}

func (d *deriver) terminal(name string) string {
	pick := func(s ...string) string { return s[d.r.IntN(len(s))] }
	switch name {
	case "Label":
		return pick("@p", "@a.b", "@0")
	case "Value", "Operand":
		return pick("%x", "%y")
	case "String":
		return pick(`"s"`, `""`, `"a\"b"`)
	case "Number":
		return pick("0", "1", "-3", "2.5", "-inf", "1e-3")
	case "Integer":
		return pick("0", "1", "2", "-3")
	case "DType":
		return pick("f32", "i64", "bool", "bf16")
	case "Op":
		return pick("add", "relu", "cat", "sum", "where")
	}
	return pick("dim", "other", "self")
}

// What is derived from the grammar is refused for its meaning alone.
func TestDerivedProgramsAreRead(t *testing.T) {
	g := grammar(t)
	read := 0
	for seed := range uint64(4000) {
		d := &deriver{productions: g, r: rand.New(rand.NewPCG(seed, 1))}
		d.derive(g["Instruction"], 0)
		// The values that it uses are there; those that it defines are new.
		at := 0
		for at < len(d.out) && d.out[at] != "=" {
			if strings.HasPrefix(d.out[at], "%") {
				d.out[at] = fmt.Sprintf("%%new%d", at)
			}
			at++
		}
		text := "program @p { %x = parameter \"x\" : f32[2] %y = parameter \"y\" : f32[2] " + strings.Join(d.out, " ") + " return %x }"
		if !accepts(g, text) {
			t.Fatalf("the grammar refuses what is derived from it:\n%s", text)
		}
		_, err := Parse(text)
		if syntactic(err) && !typesCounted(err) {
			t.Fatalf("%v\n%s", err, text)
		}
		if err == nil {
			read++
		}
	}
	if read < 50 {
		t.Errorf("only %d derived programs mean anything", read)
	}
}
