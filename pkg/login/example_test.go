package login_test

import (
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/login"
)

// Formatting a connection does not show its credentials.
func ExampleConnection() {
	connection := login.Connection{
		Config:  &rest.Config{Host: "https://cluster.example.com", BearerToken: "secret"},
		Expires: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	fmt.Println(connection)
	// Output: connection to https://cluster.example.com, priority 0, expires 2030-01-01T00:00:00Z
}

// Default finds the cluster as an operator without login handlers does.
func ExampleDefault() {
	connection, err := login.Default()
	if err != nil {
		fmt.Println(err)
		return
	}
	connection.Priority = 10 // preferred to the connections of other login handlers
}
