/**
 * A program that stores one project after the other in the file that it is given, and
 * prints the id of each that is stored. It goes on until it is killed.
 */
import { type ProjectId, ProjectStore } from "@device-cloud/core"
import * as StorageSqlite from "@device-cloud/storage-sqlite"
import { TestKeyRing } from "@device-cloud/testing"
import { Effect, Layer } from "effect"
import { writeSync } from "node:fs"

const write = Effect.gen(function*() {
  const { insert } = yield* ProjectStore
  for (let i = 0;; i++) {
    yield* insert({ id: `project-${i}` as ProjectId, name: "x".repeat(1000), createdAt: i })
    writeSync(1, `project-${i}\n`)
  }
})

const Storage = StorageSqlite.layer({ filename: process.argv[2]! }).pipe(Layer.provide(TestKeyRing.layer))
await Effect.runPromise(Effect.provide(write, Storage))
