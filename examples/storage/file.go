package main

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
	"k8s.io/apimachinery/pkg/types"
)

// file is a small embedded database with a bucket for every object, named by its
// uid, so that a recreated object does not inherit anything. It is safe for
// concurrent use. Data is on the disk when a method returns, so the file need not
// be closed.
//
// Access to a local file is fast: the contexts are only checked before it. A client
// of a remote database would pass them on.
type file struct{ db *bbolt.DB }

// openFile waits while another operator, which is about to stop, has the file open.
func openFile(path string) (file, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 30 * time.Second})
	return file{db}, err
}

// location describes in messages where a value is stored.
func (f file) location(uid types.UID, key string) string {
	return fmt.Sprintf("file %s, bucket %s, key %q", f.db.Path(), uid, key)
}

// get returns the value of an object's key, or nil if there is none.
func (f file) get(ctx context.Context, uid types.UID, key string) (value []byte, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = f.db.View(func(tx *bbolt.Tx) error {
		if bucket := tx.Bucket([]byte(uid)); bucket != nil {
			value = append(value, bucket.Get([]byte(key))...) // a copy: the original ends with the transaction
		}
		return nil
	})
	return value, err
}

func (f file) put(ctx context.Context, uid types.UID, key string, value []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return f.db.Update(func(tx *bbolt.Tx) error {
		bucket, err := tx.CreateBucketIfNotExists([]byte(uid))
		if err != nil {
			return err
		}
		return bucket.Put([]byte(key), value)
	})
}

// remove deletes a key. It writes nothing if the key does not exist, the usual case.
func (f file) remove(ctx context.Context, uid types.UID, key string) error {
	if value, err := f.get(ctx, uid, key); value == nil || err != nil {
		return err
	}
	return f.db.Update(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket([]byte(uid))
		if bucket == nil {
			return nil
		}
		return bucket.Delete([]byte(key))
	})
}

// forget deletes all data of an object.
func (f file) forget(ctx context.Context, uid types.UID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return f.db.Update(func(tx *bbolt.Tx) error {
		if tx.Bucket([]byte(uid)) == nil {
			return nil
		}
		return tx.DeleteBucket([]byte(uid))
	})
}
