package pt2

import (
	"io"
	"os"
	"path"
	"strings"
)

// Weight opens the storage that holds a constant of Weights: the whole of it, of
// which the constant is a strided view. Its file is an archive of its own, made
// by torch.save.
func (m *Model) Weight(name string) (*Section, StoredWeight, error) {
	w, ok := m.Weights[name]
	if !ok {
		return nil, w, locate(m.problem("weights_config.json", "no weight %q", printable(name)), m.p.Path, "")
	}
	f := m.p.members[weightsPath+w.File]
	s, err := f.section(m.p.lim.Memory)
	if err != nil {
		return nil, w, locate(err, m.p.Path, "")
	}
	inner, err := storageOf(s, m.p.lim)
	if err != nil {
		s.Close()
		return nil, w, locate(err, m.p.Path, f.name)
	}
	return inner, w, nil
}

// storageOf returns the one storage in a file made by torch.save.
func storageOf(s *Section, lim Limits) (*Section, error) {
	members, err := archiveMembers(s, s.Size, s.File, lim)
	if err != nil {
		return nil, err
	}
	var found *member
	for i := range members {
		m := &members[i]
		dir, base := path.Split(m.name)
		switch {
		case base == "byteorder":
			b, err := m.read(16)
			if err != nil {
				return nil, err
			}
			if strings.TrimSpace(string(b)) != "little" {
				return nil, problem("the weight's byte order is not little")
			}
		case path.Base(dir) == "data":
			if found != nil {
				return nil, problem("the weight's file holds more than one storage")
			}
			found = m
		}
	}
	if found == nil || found.place == nil {
		return nil, problem("the weight's file holds no storage that can be read in place")
	}
	inner, err := found.place()
	if err != nil {
		return nil, err
	}
	return inside(s, inner), nil
}

// inside makes a section of an archive that is itself a section of a file say
// where in the file it lies; closing it closes the outer one.
func inside(outer, inner *Section) *Section {
	var f *os.File
	var at int64
	if outer.File != nil {
		f, at = outer.File, outer.Offset+inner.Offset
	}
	return &Section{
		ReaderAt: io.NewSectionReader(outer, inner.Offset, inner.Size), Size: inner.Size,
		File: f, Offset: at, close: outer.Close,
	}
}
