package safetensors

import "bytes"

// toSafetensors is what converts a checkpoint in Python.
const toSafetensors = `safetensors.torch.save_file({k: v.clone() for k, v in ` +
	`torch.load("FILE", map_location="cpu", weights_only=True).items()}, "FILE.safetensors")`

// otherFormats are those that are mistaken for safetensors, by how their files begin.
var otherFormats = []struct{ begins, is string }{
	{"PK\x03\x04", "this is a zip archive, such as a checkpoint of torch.save (aoti.Load takes archives that PyTorch compiled); in Python, make it safetensors by " + toSafetensors},
	{"\x80\x02", "this is a pickle, such as a checkpoint of torch.save; in Python, make it safetensors by " + toSafetensors},
	{"\x80\x03", "this is a pickle; in Python, make its tensors safetensors by safetensors.torch.save_file"},
	{"\x80\x04", "this is a pickle; in Python, make its tensors safetensors by safetensors.torch.save_file"},
	{"\x80\x05", "this is a pickle; in Python, make its tensors safetensors by safetensors.torch.save_file"},
	{"version ", "this is a pointer of Git LFS: get the file itself by git lfs pull"},
	{"GGUF", "this is a GGUF file"},
	{"\x89HDF", "this is an HDF5 file"},
	{"\x93NUMPY", "this is a NumPy array; in Python, make it safetensors by safetensors.numpy.save_file"},
	{"\x1f\x8b", "this is compressed by gzip"},
	{"<!", "this is a page of HTML, not what was to be downloaded"},
	{"<h", "this is a page of HTML, not what was to be downloaded"},
}

// wrongFile is the error of a file whose first bytes are no length of a header: that it is another
// format, if it is known, otherwise the reason.
func wrongFile(begins [lengthSize]byte, reason string) error {
	for _, f := range otherFormats {
		if bytes.HasPrefix(begins[:], []byte(f.begins)) {
			reason = f.is
			break
		}
	}
	return &FormatError{0, reason}
}
