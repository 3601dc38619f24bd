import { type DeviceMethod, DeviceName, ProductKey, userMethod, userReplyMethod } from "@device-cloud/core"
import { assert, it } from "@effect/vitest"
import { ownerOf } from "../src/TopicOwner.ts"
import { makeRouter, methodPrefix, type Route } from "../src/TopicRouter.ts"

const owner = { productKey: ProductKey.make("pk"), deviceName: DeviceName.make("dn") }

const declared: Readonly<Record<string, DeviceMethod.MessageForm>> = {
  "thing.acme.selftest": "request",
  "thing.acme.ping": "notice",
  "thing.acme.blob": "bytes",
  "thing.acme.done_reply": "answer",
  "thing.ntp": "time",
  "thing.ota.inform": "notice",
  "thing.shadow": "shadow",
  [userMethod]: "user"
}

const router = makeRouter((method) => declared[method])

const route = (topic: string): Route | undefined => router(topic, methodPrefix(owner), owner)

it.each(["constructor", "toString", "__proto__", "", "/ota/device/", "/ota/device/unknown/"])(
  "nothing is carried on %spk/dn",
  (start) => assert.isUndefined(route(`${start}pk/dn`))
)

it("versions and progress are told below /ota/device", () => {
  const methods = ["inform", "progress"].map((what) => route(`/ota/device/${what}/pk/dn`)?.method)
  assert.deepStrictEqual(methods, ["thing.ota.inform", "thing.ota.progress"])
})

it.each(["/ota/device/inform/pk/dn?_rid=1", "/shadow/update/pk/dn?", "/sys/pk/dn/thing/log/post?a=/b"])(
  "%s belongs to its device, whatever follows the ?",
  (topic) => assert.deepStrictEqual(ownerOf(topic), owner)
)

it("a broadcast belongs to no device, also where it looks like a user topic", () =>
  assert.isUndefined(ownerOf("/broadcast/pk/user/a")))

it.each([
  ["thing/acme/selftest", { form: "request", method: "thing.acme.selftest", replyTopic: "thing/acme/selftest_reply" }],
  ["thing/acme/ping", { form: "notice", method: "thing.acme.ping", replyTopic: "" }],
  ["thing/acme/blob", { form: "bytes", method: "thing.acme.blob", replyTopic: "thing/acme/blob_reply" }],
  ["thing/acme/done_reply", { form: "answer", method: "thing.acme.done_reply", replyTopic: "" }],
  ["_thing/diag/post", { form: "request", method: "thing.diag.post", replyTopic: "_thing/diag/post_reply" }]
])(
  "%s below /sys has the form that its method declares",
  (path, { replyTopic, ...rest }) =>
    assert.deepStrictEqual(route(`/sys/pk/dn/${path}?_v=1`), {
      ...rest,
      replyTopic: replyTopic === "" ? "" : `/sys/pk/dn/${replyTopic}`
    } as Route)
)

it("the reply to a call comes on the topic of the call, which names the device", () => {
  const answer = route("/ext/rrpc/7/sys/pk/dn/thing/service/a")
  assert.deepInclude(answer, { form: "answer" })
  assert.deepStrictEqual(route("/ext/rrpc/7/anything"), answer)
  assert.deepStrictEqual(route("/ext/rrpc/7/pk/dn/user/a/b"), {
    form: "user",
    method: userReplyMethod,
    replyTopic: "",
    repliesTo: "7"
  })
  for (const other of ["/ext/rrpc/7/pk/other/user/a", "/ext/rrpc/7/sys/pk/other/thing/service/a"]) {
    assert.isUndefined(route(other))
  }
})

it("an unknown method of the protocol is a request, whose reply says that it is unknown", () =>
  assert.deepStrictEqual(route("/sys/pk/dn/thing/acme/unknown"), {
    form: "request",
    method: "thing.acme.unknown",
    replyTopic: "/sys/pk/dn/thing/acme/unknown_reply"
  }))

it.each(["thing/acme/unknown_reply", "acme/unknown", "user", "thing"])(
  "nothing is carried on /sys/pk/dn/%s",
  (path) => assert.isUndefined(route(`/sys/pk/dn/${path}`))
)

it.each(["thing.ntp", "thing.ota.inform", "thing.shadow"])(
  "%s has a topic of its own and is a plain request below /sys",
  (method) => assert.strictEqual(route(`/sys/pk/dn/${method.replaceAll(".", "/")}`)?.form, "request")
)
