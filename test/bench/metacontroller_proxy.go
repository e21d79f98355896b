package main

import (
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"net/http/httputil"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// newProxy serves the API server of a configuration on loopback, over TLS and HTTP/2 as the API
// server does. Requests pass through the transport of the configuration, which counts them.
func newProxy(config *rest.Config) (*httptest.Server, error) {
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	return serveTLS(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches
		ErrorLog:      log.New(io.Discard, "", 0),
	}), nil
}

// writeProxyConfig writes a kubeconfig for the proxy. It has no credentials: the proxy has them.
func writeProxyConfig(path string, proxy *httptest.Server) error {
	const name = "proxy"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   proxy.URL,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Certificate().Raw}),
	}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name}
	config.CurrentContext = name
	return clientcmd.WriteToFile(*config, path)
}
