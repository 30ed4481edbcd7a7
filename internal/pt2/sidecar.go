package pt2

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// maxMetadata is the size of the metadata, which has some 150 bytes.
const maxMetadata = 1 << 20

// decode reads a JSON member. The decoder bounds nesting by itself.
func (m *Model) decode(file string, limit int64, into any) error {
	b, err := m.files[file].read(min(limit, m.p.lim.Text))
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	if err := dec.Decode(into); err != nil {
		return &FormatError{Member: m.files[file].name, Problem: "not the JSON that it should be", Err: err}
	}
	if dec.More() {
		return &FormatError{Member: m.files[file].name, Problem: "more than one JSON value"}
	}
	return nil
}

// readMetadata reads the metadata beside the library, whose values are strings;
// others are kept as their JSON.
func (m *Model) readMetadata(stem string) error {
	m.Metadata = Metadata{}
	name := stem + "_metadata.json"
	if m.files[name] == nil {
		name = ""
		for _, f := range m.Files() {
			if strings.HasSuffix(f, "_metadata.json") {
				name = f
			}
		}
		if name == "" {
			return nil
		}
	}
	var raw map[string]json.RawMessage
	if err := m.decode(name, maxMetadata, &raw); err != nil {
		return err
	}
	for k, v := range raw {
		var s string
		if json.Unmarshal(v, &s) != nil {
			s = string(v)
		}
		m.Metadata[k] = s
	}
	return nil
}

// readExterns reads the calls that go through a proxy executor.
func (m *Model) readExterns(stem string) error {
	name := stem + ".json"
	if m.files[name] == nil {
		return nil
	}
	var doc struct {
		Nodes []json.RawMessage `json:"nodes"`
	}
	if err := m.decode(name, m.p.lim.Text, &doc); err != nil {
		return err
	}
	for i, raw := range doc.Nodes {
		var node struct {
			Name string `json:"name"`
			Node struct {
				Target string `json:"target"`
			} `json:"node"`
		}
		if err := json.Unmarshal(raw, &node); err != nil || node.Node.Target == "" {
			return &FormatError{Member: m.files[name].name, Problem: fmt.Sprintf("node %d names no op", i), Err: err}
		}
		m.Externs = append(m.Externs, ExternOp{node.Name, node.Node.Target, raw})
	}
	return nil
}

// readWeights reads which constants lie in files of their own: name, then file,
// shape, strides, offset.
func (m *Model) readWeights() error {
	const name = "weights_config.json"
	if m.files[name] == nil {
		return nil
	}
	var raw map[string][]json.RawMessage
	if err := m.decode(name, m.p.lim.Text, &raw); err != nil {
		return err
	}
	m.Weights = make(map[string]StoredWeight, len(raw))
	for weight, row := range raw {
		var w StoredWeight
		bad := len(row) != 4
		for i, into := range []any{&w.File, &w.Shape, &w.Strides, &w.Offset} {
			bad = bad || json.Unmarshal(row[i], into) != nil
		}
		switch {
		case bad:
			return m.problem(name, "the entry of weight %q is not [file, shape, strides, offset]", printable(weight))
		case m.p.members[weightsPath+w.File] == nil:
			return m.problem(name, "weight %q lies in %q, which is not there", printable(weight), printable(w.File))
		case len(w.Shape) != len(w.Strides) || w.Offset < 0:
			return m.problem(name, "the place of weight %q makes no sense", printable(weight))
		}
		m.Weights[weight] = w
	}
	return nil
}
