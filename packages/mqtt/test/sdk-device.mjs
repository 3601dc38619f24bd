/**
 * A device program on the public SDK `alibabacloud-iot-device-sdk`, in a process
 * of its own: it does what the test tells it, and tells the test what happens.
 */
import iot from "alibabacloud-iot-device-sdk"

const tell = (event, data) => process.send({ event, data })

process.once("message", (options) => {
  const device = iot.device(options)

  device.once("connect", () => {
    device.onProps((message) => {
      tell("props", message)
      device.postProps(message.params, (reply) => tell("reply", reply))
    })
    // The SDK subscribes to the first of the services alone.
    device.onService("Reset", (message, reply) => {
      tell("service", message)
      reply({ id: message.id, code: 200, data: { restarts: 1 } }, "async")
    })
    device.onService("SetLight", (message, reply) => {
      tell("service", message)
      reply({ id: message.id, code: 100_001, data: { reason: "broken" } }, "async")
    })
    device.onShadow((message) => tell("shadow", message))
    device.onConfig((message) => tell("config", message))
  })
  device.on("connect", () => tell("connect"))
  device.on("error", (error) => tell("error", String(error)))

  process.on("message", ({ args, call }) => device[call](...args, (reply) => tell("reply", reply)))
  process.once("disconnect", () => process.exit())
})
