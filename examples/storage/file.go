package main

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
	"k8s.io/apimachinery/pkg/types"
)

// file is a small embedded store: a bucket for every object, named by its uid,
// so that an object which is created anew does not inherit anything. It is safe
// for concurrent use. What is written is on the disk when the method returns, so
// that the file need not be closed in order.
//
// A local file is quick: the contexts are only asked before an access. A client
// of a database would pass them on.
type file struct{ db *bbolt.DB }

// openFile waits for another operator that has the file and is about to stop.
func openFile(path string) (file, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 30 * time.Second})
	return file{db}, err
}

// place tells people where something is.
func (f file) place(uid types.UID, key string) string {
	return fmt.Sprintf("file %s, bucket %s, key %q", f.db.Path(), uid, key)
}

// get is the value of an object's key; nil if there is none.
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

// remove writes nothing if there is nothing to remove, which is the usual case.
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

// forget drops everything of an object.
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
