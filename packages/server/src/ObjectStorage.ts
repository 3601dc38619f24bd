/**
 * Where the objects of the server are: in its database, as files, or on an object
 * storage. What was stored as files before stays there and is found.
 */
import { ObjectStore } from "@device-cloud/core"
import * as ObjectsS3 from "@device-cloud/objects-s3"
import { FileObjectStore } from "@device-cloud/platform-node"
import { Context, Effect, Layer, Option, Stream } from "effect"
import { existsSync } from "node:fs"
import { join } from "node:path"
import * as DiskReserve from "./DiskReserve.ts"
import { InvalidConfig, type ServerConfig } from "./ServerConfig.ts"

const files = (directory: string) =>
  FileObjectStore.layer({ directory }).pipe(
    Layer.catch(({ cause }) =>
      Layer.unwrap<ObjectStore, never, never, InvalidConfig, never>(
        Effect.fail(new InvalidConfig({ message: `DATA_DIR: ${String(cause)}` }))
      )
    )
  )

/** Asks for the objects of the storage, which are in the database. */
export const layer = ({ dataDir, objects, s3 }: ServerConfig): Layer.Layer<ObjectStore, InvalidConfig, ObjectStore> => {
  const directory = join(dataDir, "objects")
  if (objects === "files") return Layer.provide(DiskReserve.layer(dataDir), files(directory))
  const current = s3 === undefined ? DiskReserve.layer(dataDir) : ObjectsS3.layer(s3)
  if (!existsSync(directory)) return current
  return Layer.effect(
    ObjectStore,
    Effect.gen(function*() {
      const former = Context.get(yield* Layer.build(files(directory)), ObjectStore)
      return withFormer(yield* ObjectStore, former)
    })
  ).pipe(Layer.provide(current))
}

const withFormer = (
  current: ObjectStore["Service"],
  former: ObjectStore["Service"]
): ObjectStore["Service"] => ({
  write: current.write,
  find: (objectId) =>
    Effect.flatMap(
      current.find(objectId),
      (found) => Option.isSome(found) ? Effect.succeed(found) : former.find(objectId)
    ),
  read: (object, range) =>
    Stream.unwrap(
      Effect.map(
        current.find(object.objectId),
        (found) => (Option.isSome(found) ? current : former).read(object, range)
      )
    ),
  remove: (objectId) =>
    Effect.flatMap(current.remove(objectId), (isRemoved) => isRemoved ? Effect.succeed(true) : former.remove(objectId))
})
