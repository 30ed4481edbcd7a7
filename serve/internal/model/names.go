package model

import (
	"encoding/json"
	"fmt"

	"github.com/loris-ml/loris/serve/internal/inference"
)

// names finds inputs or outputs by any name that they go by.
type names map[string]int

// add gives a name to a position, unless another position has it.
func (n names) add(name string, i int) {
	if _, taken := n[name]; !taken && name != "" {
		n[name] = i
	}
}

// pytree is PyTorch's description of how arguments nest.
type pytree struct {
	Type     *string  `json:"type"`
	Context  *string  `json:"context"`
	Children []pytree `json:"children_spec"`
}

// parseSpec reads a call spec; nil if there is none that can be read.
func parseSpec(text string) *pytree {
	var parts []json.RawMessage
	if json.Unmarshal([]byte(text), &parts) != nil || len(parts) != 2 {
		return nil
	}
	var t pytree
	if json.Unmarshal(parts[1], &t) != nil {
		return nil
	}
	return &t
}

// keys returns what the children of a node are called: the keys of a dictionary, or
// their positions.
func (t *pytree) keys() []string {
	var keys []string
	if t.Context == nil || json.Unmarshal([]byte(*t.Context), &keys) != nil || len(keys) != len(t.Children) {
		keys = make([]string, len(t.Children))
		for i := range keys {
			keys[i] = fmt.Sprint(i)
		}
	}
	return keys
}

// leaves calls leaf for each tensor below a node, in order, with its path below root:
// "[1][mask]".
func (t *pytree) leaves(path string, leaf func(path string)) {
	if t.Type == nil {
		leaf(path)
		return
	}
	for i, key := range t.keys() {
		t.Children[i].leaves(path+"["+key+"]", leaf)
	}
}

// argumentNames returns the path of each input ("ARGS[0]", "KWARGS[mask]") and, where it
// is a keyword argument, its key.
func argumentNames(spec string) (paths, keys []string) {
	t := parseSpec(spec)
	if t == nil || len(t.Children) != 2 {
		return nil, nil
	}
	add := func(path string) { paths, keys = append(paths, path), append(keys, "") }
	t.Children[0].leaves("ARGS", add)
	kwargs := &t.Children[1]
	for i, key := range kwargs.keys() {
		child := &kwargs.Children[i]
		child.leaves("KWARGS["+key+"]", add)
		if child.Type == nil {
			keys[len(keys)-1] = key
		}
	}
	return paths, keys
}

// resultNames returns the path of each output ("RESULT[sum]") and its key, where the
// program returns a dictionary.
func resultNames(spec string) (paths, keys []string) {
	t := parseSpec(spec)
	if t == nil {
		return nil, nil
	}
	t.leaves("RESULT", func(path string) { paths, keys = append(paths, path), append(keys, "") })
	if t.Type != nil && *t.Type == "builtins.dict" {
		at := 0
		for i, key := range t.keys() {
			n := 0
			t.Children[i].leaves("", func(string) { n++ })
			if t.Children[i].Type == nil {
				keys[at] = key
			}
			at += n
		}
	}
	return paths, keys
}

// giveNames fills in all names that inputs and outputs go by. The first of them is the
// one of the metadata: that of the configuration, the key of a keyword argument or
// of a result, or the model's own.
func (m *Model) giveNames(o Options) error {
	in, out := m.container.CallSpec()
	if len(o.InputNames) > 0 && len(o.InputNames) != len(m.Inputs) {
		return inference.Errorf(inference.InvalidArgument, "the configuration names %d inputs, the model has %d", len(o.InputNames), len(m.Inputs))
	}
	if len(o.OutputNames) > 0 && len(o.OutputNames) != len(m.Outputs) {
		return inference.Errorf(inference.InvalidArgument, "the configuration names %d outputs, the model has %d", len(o.OutputNames), len(m.Outputs))
	}
	own := make([]string, len(m.Inputs))
	for i := range own {
		own[i] = m.Inputs[i].Name
	}
	paths, keys := argumentNames(in)
	m.inputs = gather(own, o.InputNames, paths, keys, "INPUT", "in", func(i int, name string) { m.Inputs[i].Name = name })
	own = make([]string, len(m.Outputs))
	for i := range own {
		own[i] = m.Outputs[i].Name
	}
	paths, keys = resultNames(out)
	m.outputs = gather(own, o.OutputNames, paths, keys, "OUTPUT", "out", func(i int, name string) { m.Outputs[i].Name = name })
	return nil
}

func gather(own, configured, paths, keys []string, triton, short string, display func(int, string)) names {
	if len(paths) != len(own) { // of another program, or none
		paths, keys = make([]string, len(own)), make([]string, len(own))
	}
	n := names{}
	for _, column := range [][]string{keys, own, paths} {
		for i, name := range column {
			n.add(name, i)
		}
	}
	for i := range own {
		n.add(fmt.Sprintf("%s__%d", triton, i), i)
		n.add(fmt.Sprintf("%s%d", short, i), i)
	}
	given := inOrder(configured, n, len(own))
	for i, name := range given {
		if name != "" {
			n[name] = i // whatever else had it
		}
	}
	for i := range own {
		for _, name := range []string{given[i], keys[i], own[i]} {
			if at, ok := n[name]; ok && at == i {
				display(i, name)
				break
			}
		}
	}
	return n
}

// inOrder returns the configured names by position: first those that the model knows, and
// then the others for the positions that are left.
func inOrder(configured []string, known names, n int) []string {
	given := make([]string, n)
	var others []string
	for _, name := range configured {
		if i, ok := known[name]; ok && given[i] == "" {
			given[i] = name
		} else {
			others = append(others, name)
		}
	}
	for i := range given {
		if given[i] == "" && len(others) > 0 {
			given[i], others = others[0], others[1:]
		}
	}
	return given
}
