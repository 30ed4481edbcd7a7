package pt2

import (
	"bytes"
	"context"
	"path"
	"strings"
)

// WeightFile opens a file of data/weights, which torch.save wrote: an archive of its
// own around one storage; see Storage.
func (m *Model) WeightFile(file string) (*Section, error) {
	f := m.p.members[weightsPath+file]
	if f == nil {
		return nil, locate(m.problem("weights_config.json", "no file %q", printable(file)), m.p.Path, "")
	}
	return m.p.open(f)
}

// Storage returns the one storage in data, which are the contents of a file of
// data/weights. With verify its checksum is compared, unless the archive around the
// file has one of the whole. Damage is a *FormatError.
func (m *Model) Storage(ctx context.Context, file string, data []byte, verify bool) ([]byte, error) {
	f := m.p.members[weightsPath+file]
	s, err := storageOf(data, m.p.lim)
	if err != nil {
		return nil, locate(err, m.p.Path, f.name)
	}
	storage := data[s.Offset : s.Offset+s.Size : s.Offset+s.Size]
	if !verify || f.checked {
		return storage, nil
	}
	sum, err := checksum(ctx, storage, nil)
	if err == nil && sum != s.crc {
		s.path, s.member = m.p.Path, f.name
		err = s.damaged(sum)
	}
	return storage, err
}

// storageOf returns where the one storage lies in a file made by torch.save.
func storageOf(data []byte, lim Limits) (*Section, error) {
	members, err := archiveMembers(bytes.NewReader(data), int64(len(data)), nil, lim)
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
	return found.section(0)
}
