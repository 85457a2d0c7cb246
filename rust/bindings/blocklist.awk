# SPDX-License-Identifier: GPL-2.0
#
# Prints the name of every struct and union that the kernel crate's own bindings
# define completely, one a line. Our bindings leave these out and take the kernel
# crate's, so that `struct device` is one type and not two. Types the kernel crate
# knows only as forward declarations are ours to generate.

/^pub (struct|union) [A-Za-z_][A-Za-z0-9_]*/ {
	name = $3
	sub(/[^A-Za-z0-9_].*/, "", name)
	opaque = 0
	if ($0 ~ /[;}]$/)
		finish()
	next
}
/_unused: \[u8; 0\]|^    pub _address: u8,$/ { opaque = 1 }
/^}/ && name != "" { finish() }

function finish() {
	if (!opaque && name !~ /^__(Bindgen|Incomplete)/)
		print name
	name = ""
}
