package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/model/object"
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

// objectKey is the key of the name of the object, with which sweep finds it in the cluster.
const objectKey = "object"

// identityOf returns what finds an object in the cluster.
func identityOf(body *object.Body) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: body.APIVersion(), Kind: body.Kind()},
		ObjectMeta: metav1.ObjectMeta{Namespace: body.Namespace(), Name: body.Name(), UID: body.UID()},
	}
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

func (f file) put(ctx context.Context, body *object.Body, key string, value []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	identity, err := json.Marshal(identityOf(body))
	if err != nil {
		return err
	}
	return f.db.Update(func(tx *bbolt.Tx) error {
		bucket, err := tx.CreateBucketIfNotExists([]byte(body.UID()))
		if err != nil {
			return err
		}
		if err := bucket.Put([]byte(objectKey), identity); err != nil {
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

// Erase deletes all data of an object that is gone. It makes both storages implement storage.Eraser.
func (f file) Erase(ctx context.Context, body *object.Body) error { return f.forget(ctx, body.UID()) }

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

// sweep forgets the objects that have disappeared while no operator was running: nothing calls Erase for them. It asks
// for each object by its name, which needs no permissions besides those of the operator, and returns the number of the
// forgotten ones. For very many objects, lists are faster.
//
// An object that cannot be read counts as existing: without its state, it would be handled as a new one.
func (f file) sweep(ctx context.Context, cluster client.Reader) (forgotten int, err error) {
	var known []*metav1.PartialObjectMetadata
	err = f.db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(_ []byte, bucket *bbolt.Bucket) error {
			one := &metav1.PartialObjectMetadata{}
			if err := json.Unmarshal(bucket.Get([]byte(objectKey)), one); err == nil {
				known = append(known, one)
			}
			return nil
		})
	})
	if err != nil {
		return 0, err
	}
	for _, one := range known {
		found := &metav1.PartialObjectMetadata{TypeMeta: one.TypeMeta}
		err := cluster.Get(ctx, client.ObjectKeyFromObject(one), found)
		if isGone := apierrors.IsNotFound(err) || err == nil && found.UID != one.UID; !isGone {
			continue
		}
		if err := f.forget(ctx, one.UID); err != nil {
			return forgotten, err
		}
		forgotten++
	}
	return forgotten, nil
}
