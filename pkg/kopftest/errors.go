package kopftest

import "errors"

// errNoBinaries says how to get an API server.
var errNoBinaries = errors.New("there is no API server to start: set " + assetsVariable +
	" to a directory with kube-apiserver and etcd, such as the output of `setup-envtest use -p path`")
