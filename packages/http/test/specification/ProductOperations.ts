/**
 * Products and their thing models.
 */
import { type Fields, members, oneOf, page, paged, product, thingModel } from "./Fields.ts"
import type { Operation } from "./Operation.ts"

const createProductBody: Fields = {
  name: "string",
  network_type: oneOf("wifi", "ethernet", "cellular", "lorawan", "wifi+ble-mesh"),
  node_type: oneOf("direct", "gateway", "gateway-sub"),
  protocol_type: oneOf("zigbee", "ble", "ble-mesh"),
  validate_type: oneOf("none", "weak"),
  data_format: oneOf("json", "raw"),
  dynamic_register: "bool",
  auth_type: oneOf("secret"),
  photo_url: "string",
  description: "string"
}

const oneProduct = {
  name: "Lamp",
  validate_type: "none",
  data_format: "raw",
  dynamic_register: true,
  auth_type: "secret",
  photo_url: "https://example.com/lamp.png",
  description: "It shines"
}

export const products: ReadonlyArray<Operation> = [
  { method: "GET", path: "/products/{product_key}", data: { product_info: members(product) } },
  {
    method: "GET",
    path: "/products",
    query: page,
    calls: () => [{}, { query: { page: "1", page_size: "2" } }],
    data: paged(product)
  },
  {
    method: "POST",
    path: "/products",
    body: createProductBody,
    required: ["name", "node_type", "validate_type", "data_format", "auth_type"],
    calls: () => [
      { body: { ...oneProduct, node_type: "direct", network_type: "wifi" } },
      { body: { ...oneProduct, node_type: "direct", network_type: "ethernet", validate_type: "weak" } },
      { body: { ...oneProduct, node_type: "direct", network_type: "cellular", data_format: "json" } },
      { body: { ...oneProduct, node_type: "direct", network_type: "lorawan" } },
      { body: { ...oneProduct, node_type: "direct", network_type: "wifi+ble-mesh" } },
      { body: { ...oneProduct, node_type: "gateway", network_type: "ethernet" } },
      { body: { ...oneProduct, node_type: "gateway" } },
      { body: { ...oneProduct, node_type: "gateway-sub", protocol_type: "zigbee" } },
      { body: { ...oneProduct, node_type: "gateway-sub", protocol_type: "ble" } },
      { body: { ...oneProduct, node_type: "gateway-sub", protocol_type: "ble-mesh" } },
      {
        body: {
          ...oneProduct,
          node_type: "direct",
          network_type: "wifi",
          product_key: "a1b2c3d4e5f",
          product_secret: "0123456789abcdef",
          device_type: "Light"
        }
      },
      {
        body: {
          name: "Smallest",
          node_type: "direct",
          network_type: "wifi",
          validate_type: "none",
          data_format: "json",
          auth_type: "secret"
        }
      }
    ],
    data: { product_info: members(product) },
    refuses: [
      [{ network_type: undefined }, "network_type"],
      [{ node_type: "gateway-sub", network_type: undefined }, "protocol_type"]
    ]
  },
  { method: "DELETE", path: "/products/{product_key}", on: { product_key: "empty_product_key" } },
  {
    method: "PUT",
    path: "/products/{product_key}",
    spoils: true,
    body: { name: "string", dynamic_register: "bool", photo_url: "string", description: "string" },
    required: ["name", "dynamic_register", "photo_url"],
    calls: () => [
      { body: { name: "New", dynamic_register: true, photo_url: "https://example.com/new.png", description: "Text" } },
      { body: { name: "New", dynamic_register: false, photo_url: "" } }
    ]
  },
  {
    method: "PUT",
    path: "/products/{product_key}/status",
    body: { status: oneOf("developing", "released") },
    required: ["status"],
    calls: () => ["released", "developing"].map((status) => ({ body: { status } }))
  }
]

const onOff = { 0: "off", 1: "on" }

/** A property, an event and a service in the metadata form. */
export const model = {
  properties: [
    { id: "power", name: "Power", accessMode: "rw", required: true, dataType: { type: "bool", specs: onOff } },
    { id: "temperature", name: "Temperature", accessMode: "r", dataType: { type: "float", min: -40, max: 120 } },
    { id: "label", name: "Label", accessMode: "rw", dataType: { type: "text", length: 64 } },
    { id: "timers", name: "Timers", accessMode: "rw", dataType: { type: "array", size: 10, elementType: "int" } }
  ],
  events: [{
    id: "overheated",
    name: "Overheated",
    eventType: "info",
    outputData: [{ id: "temperature", name: "Temperature", dataType: { type: "float", min: -40, max: 200 } }]
  }],
  services: [{
    id: "reset",
    name: "Reset",
    callType: "async",
    inputData: [{ id: "delay", name: "Delay", dataType: { type: "int", min: 0, max: 60 } }],
    outputData: []
  }]
}

const changedModel: Fields = { thing_model: thingModel }

export const thingModels: ReadonlyArray<Operation> = [
  {
    method: "GET",
    path: "/products/{product_key}/thing-model",
    query: { model_type: oneOf("metadata", "tsl", "sdf") },
    required: ["model_type"],
    calls: () => [{ query: { model_type: "metadata" } }],
    data: { thing_model: thingModel }
  },
  {
    method: "GET",
    path: "/products/{product_key}/thing-model",
    calls: () => ["tsl", "sdf"].map((model_type) => ({ query: { model_type } })),
    data: { thing_model: "object" }
  },
  {
    method: "POST",
    path: "/products/{product_key}/thing-model",
    body: { model_type: oneOf("metadata", "tsl", "sdf"), model_data: "string" },
    required: ["model_type", "model_data"],
    calls: () => [{ body: { model_type: "metadata", model_data: JSON.stringify(model) } }],
    data: changedModel
  },
  {
    method: "PUT",
    path: "/products/{product_key}/thing-model",
    query: { source_product_key: "string" },
    required: ["source_product_key"],
    calls: ({ source_product_key }) => [{ query: { source_product_key } }],
    data: changedModel
  },
  { method: "DELETE", path: "/products/{product_key}/thing-model", data: changedModel },
  {
    method: "POST",
    path: "/products/{product_key}/thing-model-element",
    body: { type: oneOf("property", "event", "service"), element: "object" },
    required: ["type", "element"],
    calls: () => [
      { body: { type: "property", element: { ...model.properties[0]!, id: "added" } } },
      { body: { type: "event", element: { ...model.events[0]!, id: "happened" } } },
      { body: { type: "service", element: { ...model.services[0]!, id: "serve" } } }
    ],
    data: changedModel
  },
  {
    method: "PUT",
    path: "/products/{product_key}/thing-model-element",
    body: { type: oneOf("property", "event", "service"), element: "object" },
    required: ["type", "element"],
    calls: () => [
      { body: { type: "property", element: { ...model.properties[0]!, name: "Switch" } } },
      { body: { type: "event", element: { ...model.events[0]!, name: "Hot" } } },
      { body: { type: "service", element: { ...model.services[0]!, name: "Restart" } } }
    ],
    data: changedModel
  },
  {
    method: "DELETE",
    path: "/products/{product_key}/thing-model-element",
    calls: () => [
      { body: { type: "property", id: "power" } },
      { body: { type: "event", id: "overheated" } },
      { query: { type: "service", id: "reset" } }
    ],
    data: changedModel
  }
]
