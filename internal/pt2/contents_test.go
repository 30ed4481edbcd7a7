package pt2

import (
	"bytes"
	"context"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The checksum of chunks that are summed apart is that of the whole.
func TestChecksum(t *testing.T) {
	data := make([]byte, 3*sumChunk+12345)
	for i, r := 0, rand.New(rand.NewPCG(1, 2)); i < len(data); i++ {
		data[i] = byte(r.Uint32())
	}
	for _, n := range []int{0, 1, sumPiece - 1, sumPiece + 1, sumChunk - 1, sumChunk, sumChunk + 1, 2 * sumChunk, len(data)} {
		want := crc32.ChecksumIEEE(data[:n])
		if got, err := checksum(context.Background(), data[:n], nil); got != want || err != nil {
			t.Errorf("%d bytes: %08x, %v, want %08x", n, got, err, want)
		}
		into := make([]byte, n)
		if got, err := checksum(context.Background(), into, bytes.NewReader(data)); got != want || err != nil || !bytes.Equal(into, data[:n]) {
			t.Errorf("%d bytes from a reader: %08x, %v, want %08x", n, got, err, want)
		}
	}
}

func TestContentsRefuse(t *testing.T) {
	ctx := context.Background()
	name := "m/data/aotinductor/model/x.wrapper_weights.blob"
	whole := archiveOf(t, append(modern(), file{name: name, data: strings.Repeat("weights ", 1000)}))
	heap := func(n int64) ([]byte, error) { return make([]byte, n), nil }
	open := func(archive []byte) *Section {
		t.Helper()
		p, err := openBytes(archive)
		if err != nil {
			t.Fatal(err)
		}
		m, err := p.Model("")
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.Open("x.wrapper_weights.blob")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if data, err := open(whole).Contents(ctx, heap); err != nil || len(data) != 8000 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	bad := bytes.Clone(whole)
	bad[bytes.Index(bad, []byte("weights weights"))+77] ^= 1
	var fe *FormatError
	if _, err := open(bad).Contents(ctx, heap); !errors.As(err, &fe) || fe.Member != strings.TrimPrefix(name, "m/") || fe.Path != "t.pt2" {
		t.Errorf("damaged: %v", err)
	}
	none := errors.New("no memory")
	if _, err := open(whole).Contents(ctx, func(int64) ([]byte, error) { return nil, none }); !errors.Is(err, none) {
		t.Errorf("without memory: %v", err)
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := open(whole).Contents(over, heap); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// BenchmarkContents copies and verifies a gibibyte of weights.
func BenchmarkContents(b *testing.B) {
	if testing.Short() {
		b.Skip("it writes a gibibyte")
	}
	const size = 1 << 30
	path := filepath.Join(b.TempDir(), "weights")
	if err := os.WriteFile(path, bytes.Repeat([]byte("0123456789abcdef"), size/16), 0o600); err != nil {
		b.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	b.SetBytes(size)
	into := make([]byte, size)
	for b.Loop() {
		if _, err := checksum(context.Background(), into, f); err != nil {
			b.Fatal(err)
		}
	}
}
