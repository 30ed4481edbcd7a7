package hostile

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/loris-ml/loris/internal/cache"
	"github.com/loris-ml/loris/safetensors"
)

// programSeeds are the committed programs, and one that names many kinds of attributes.
func programSeeds(root fs.FS) (seeds [][]byte, err error) {
	for _, pattern := range []string{"internal/graph/testdata/rewrite/*.lir", "backend/internal/fuse/testdata/*.lir"} {
		names, err := fs.Glob(root, pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if path.Base(name) == "fold-integers.lir" {
				continue // it divides by zero
			}
			b, err := fs.ReadFile(root, name)
			if err != nil {
				return nil, err
			}
			// A golden has its result after the program.
			if end := bytes.LastIndex(b, []byte("\n}")); end >= 0 {
				b = b[:end+2]
			}
			seeds = append(seeds, b)
		}
	}
	if len(seeds) == 0 {
		return nil, fmt.Errorf("hostile: no programs below the root of the repository")
	}
	return append(seeds, []byte(attributes)), nil
}

const attributes = `program @a {
  %x = parameter "x" : f32[2,3,8,8]
  %w = parameter "w" : f32[4,3,3,3]
  %i = parameter "i" : i64[5]
  %c = conv2d(%x, %w, stride=[2,1], padding=[1,1], dilation=[1,2])
  %p = max_pool2d(%x, [2,2], stride=[2,2], padding=[1,1], ceil_mode=true)
  %r = repeat(%i, [3,2])
  %s = slice(%x, dim=2, start=1, end=7, step=2)
  %e = pad(%x, [1,2,3,4], mode="constant", value=1.5)
  %a = adaptive_avg_pool2d(%x, [3,5])
  %t, %n = topk(%x, 3, dim=-1)
  %f = flip(%x, [0,3])
  %l = roll(%x, [1,-2], dims=[0,1])
  %o = one_hot(%i, num_classes=7)
  %u = full([2,3], 1.5, dtype=bf16)
  return %c, %p, %r, %s, %e, %a, %t, %f, %l, %o, %u
}`

// membersOf returns the libraries and the generated sources of packages.
func membersOf(packages [][]byte) (libraries, sources [][]byte, err error) {
	for _, b := range packages {
		z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return nil, nil, err
		}
		for _, f := range z.File {
			var to *[][]byte
			switch {
			case strings.HasSuffix(f.Name, ".so"):
				to = &libraries
			case strings.HasSuffix(f.Name, "wrapper.cpp"):
				to = &sources
			default:
				continue
			}
			data, err := member(f)
			if err != nil {
				return nil, nil, err
			}
			*to = append(*to, data)
		}
	}
	if libraries == nil || sources == nil {
		return nil, nil, fmt.Errorf("hostile: the packages have no libraries or no sources")
	}
	return libraries, sources, nil
}

func checkpointSeed() ([]byte, error) {
	var b bytes.Buffer
	err := safetensors.Write(&b, []safetensors.Tensor{
		{Name: "weight", DType: safetensors.F32, Shape: []int64{2, 3}, Data: make([]byte, 24)},
		{Name: "bias", DType: safetensors.F32, Shape: []int64{2}, Data: make([]byte, 8)},
	}, map[string]string{"step": "17"})
	return b.Bytes(), err
}

var entryPayload = bytes.Repeat([]byte("what was put into the cache. "), 40)

// entrySeed is a file of the cache as the cache writes it.
func entrySeed() ([]byte, error) {
	dir, err := os.MkdirTemp("", "hostile")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	disk, err := cache.OpenDisk(dir, cache.DiskOptions{})
	if err != nil {
		return nil, err
	}
	key := cache.NewDiskKey([]byte("key"))
	if err := disk.Put(key, entryPayload); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(disk.Dir(), key.String()+"*"))
	if err != nil || len(files) != 1 {
		return nil, fmt.Errorf("hostile: %d files of one cache entry: %w", len(files), err)
	}
	return os.ReadFile(files[0])
}

func imageSeeds() (seeds [][]byte, err error) {
	m := image.NewPaletted(image.Rect(0, 0, 9, 7), []color.Color{color.Black, color.White, color.RGBA{200, 10, 30, 255}})
	for i := range m.Pix {
		m.Pix[i] = uint8(i % 3)
	}
	for _, encode := range []func(*bytes.Buffer) error{
		func(b *bytes.Buffer) error { return png.Encode(b, m) },
		func(b *bytes.Buffer) error { return jpeg.Encode(b, m, nil) },
		func(b *bytes.Buffer) error { return gif.Encode(b, m, nil) },
	} {
		var b bytes.Buffer
		if err := encode(&b); err != nil {
			return nil, err
		}
		seeds = append(seeds, b.Bytes())
	}
	return seeds, nil
}

// idxSeed is a file of the kind that MNIST's images are in.
func idxSeed() []byte {
	b := []byte{0, 0, 8, 3}
	for _, n := range []uint32{2, 4, 4} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return append(b, make([]byte, 32)...)
}
