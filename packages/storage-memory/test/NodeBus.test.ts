import { NodeBus } from "@device-cloud/core"
import * as StorageMemory from "@device-cloud/storage-memory"
import { NodeBusContract } from "@device-cloud/testing/contracts"
import { Context, Effect, Layer } from "effect"

NodeBusContract.suite(
  "memory",
  Effect.map(Layer.build(StorageMemory.layerNodeBus), (network) => ({
    node: Layer.build(Layer.fresh(StorageMemory.layerNode)).pipe(
      Effect.map((node) => Context.get(node, NodeBus)),
      Effect.provide(network)
    )
  }))
)
