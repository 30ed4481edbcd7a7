package tokenizer

import "fmt"

// Bounds of what the library is given. It makes a regular expression of each added token, which ends
// the process where it is too large, and takes hundreds of bytes for each of the token. It puts the
// pieces of a template together one by one, and copies at each what it has so far.
const (
	maxFile   = 256 << 20
	maxToken  = 1 << 10
	maxTokens = 1 << 20 // of the added ones together
	maxGrowth = 64      // of a text in each stage
)

// settings are the parts of a file that are looked at before the library reads it.
type settings struct {
	AddedTokens []struct {
		Content string `json:"content"`
	} `json:"added_tokens"`
	Normalizer    part `json:"normalizer"`
	PreTokenizer  part `json:"pre_tokenizer"`
	PostProcessor part `json:"post_processor"`
	Decoder       part `json:"decoder"`
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
	for _, stage := range []struct {
		name string
		part part
	}{
		{"normalizer", s.Normalizer}, {"pre_tokenizer", s.PreTokenizer},
		{"post_processor", s.PostProcessor}, {"decoder", s.Decoder},
	} {
		if stage.part.growth() > maxGrowth {
			return fmt.Errorf("the %s may make a text more than %d times as long", stage.name, maxGrowth)
		}
	}
	return nil
}

// part is a stage of a tokenizer, or what such a stage consists of. It is a map, as it is for the
// library, and no struct: a struct would take names in other cases and the last of two, so that a file
// could show one thing here and another there.
type part map[string]any

func (p part) text(name string) string {
	s, _ := p[name].(string)
	return s
}

func (p part) inside(name string) part {
	m, _ := p[name].(map[string]any)
	return m
}

// parts returns the elements of a list that are parts themselves.
func (p part) parts(name string) (found []part) {
	list, _ := p[name].([]any)
	for _, element := range list {
		if m, ok := element.(map[string]any); ok {
			found = append(found, m)
		}
	}
	return found
}

// growth returns how many times as long a text may become, more than maxGrowth standing for all that
// is more.
func (p part) growth() int {
	times := 1
	switch p.text("type") {
	case "Replace":
		matched := max(1, len(p.inside("pattern").text("String"))) // an expression may match one byte
		times = max(1, (len(p.text("content"))+matched-1)/matched)
	case "Prepend":
		times = 1 + len(p.text("prepend"))
	case "Metaspace":
		times = max(1, len(p.text("replacement")))
	case "TemplateProcessing":
		times = max(p.template("single"), p.template("pair"))
	}
	for _, list := range []string{"normalizers", "pretokenizers", "processors", "decoders"} {
		for _, inner := range p.parts(list) {
			times = min(times, maxGrowth+1) * min(inner.growth(), maxGrowth+1)
		}
	}
	return min(times, maxGrowth+1)
}

// template returns how many tokens or copies of a text a template puts side by side, at most. The
// library finds a special token by its field id, which several may share, so the longest stands for
// each.
func (p part) template(name string) int {
	longest := 1
	for _, token := range p.inside("special_tokens") {
		if m, ok := token.(map[string]any); ok {
			ids, _ := m["ids"].([]any)
			longest = max(longest, len(ids))
		}
	}
	total := 0
	for _, piece := range p.parts(name) {
		if piece["SpecialToken"] != nil {
			total += longest
		}
		if piece["Sequence"] != nil {
			total++
		}
	}
	return total
}

// stripsAccents reports whether accents go although the file does not say so: those of BERT's kind
// that lower letters do by default, which the library leaves out.
func (p part) stripsAccents() bool {
	lowercase, _ := p["lowercase"].(bool)
	if p.text("type") == "BertNormalizer" && lowercase && p["strip_accents"] == nil {
		return true
	}
	for _, inner := range p.parts("normalizers") {
		if inner.stripsAccents() {
			return true
		}
	}
	return false
}
