package safetensors_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/loris-ml/loris/safetensors"
)

// A model of two tensors is written in files of at most 1 KiB and read again, without ever being in
// memory as a whole.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "model.safetensors")
	tensors := []safetensors.Info{
		{Name: "embed", DType: safetensors.U8, Shape: []int64{64, 16}},
		{Name: "head", DType: safetensors.U8, Shape: []int64{16, 10}},
	}
	err = safetensors.WriteShards(path, tensors, map[string]string{"format": "pt"}, 1024,
		func(t safetensors.Info, w io.Writer) error {
			for range t.Shape[0] {
				if _, err := w.Write(make([]byte, t.Shape[1])); err != nil {
					return err
				}
			}
			return nil
		})
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := safetensors.Open(path + ".index.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	for _, t := range f.Tensors() {
		fmt.Println(t.Shard, t.Name, t.DType, t.Shape)
	}
	rows, err := f.Section("embed")
	if err != nil {
		fmt.Println(err)
		return
	}
	row := make([]byte, 16)
	_, err = rows.ReadAt(row, 40*16) // row 40 alone
	fmt.Println(row[0], err)
	// Output:
	// model-00001-of-00002.safetensors embed U8 [64 16]
	// model-00002-of-00002.safetensors head U8 [16 10]
	// 0 <nil>
}
