/**
 * What a lamp has. The device, the cloud and the back end go by it.
 */
import { defineThingModel } from "@device-cloud/core"

export const lamp = defineThingModel({
  properties: [
    { id: "power", name: "Power", accessMode: "rw", dataType: { type: "bool" } },
    { id: "temperature", name: "Temperature", accessMode: "r", dataType: { type: "double", unit: "°C" } }
  ]
})
