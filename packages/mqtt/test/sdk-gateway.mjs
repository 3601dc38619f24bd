/**
 * A gateway program on the public SDK `alibabacloud-iot-device-sdk`, in a process
 * of its own: it does what the test tells it, and tells the test what happens.
 */
import iot from "alibabacloud-iot-device-sdk"

const tell = (event, data) => process.send({ event, data })

process.once("message", (options) => {
  const gateway = iot.gateway(options)
  let subDevice

  const login = (triple) => {
    subDevice = gateway.login(triple, (reply) => tell("reply", reply))
    subDevice.on("connect", () => {
      tell("sub-connect")
      subDevice.onProps((message) => {
        tell("props", message)
        subDevice.postProps(message.params, () => {})
      })
    })
  }

  gateway.on("connect", () => tell("connect"))
  gateway.on("error", (error) => tell("error", String(error)))

  process.on("message", ({ args, call }) => {
    if (call === "login") return login(...args)
    const reply = (answer) => tell("reply", answer)
    return call.startsWith("sub.") ? subDevice[call.slice(4)](...args, reply) : gateway[call](...args, reply)
  })
  process.once("disconnect", () => process.exit())
})
