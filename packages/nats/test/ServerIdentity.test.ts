import { assert, it } from "@effect/vitest"
import type { PeerCertificate } from "node:tls"
import { identityCheck } from "../src/ServerIdentity.ts"

const certificateFor = (...subjects: ReadonlyArray<string>) =>
  ({ subject: {}, subjectaltname: subjects.join(", ") }) as unknown as PeerCertificate

/** What Node.js asks about a server that is known by its IP address. */
const unnamed = "localhost"

const ofLocalhost = certificateFor("DNS:localhost")
const ofAddress = certificateFor("IP Address:192.0.2.1", "IP Address:2001:DB8::1")
const ofName = certificateFor("DNS:nats.example.com")

it.each(
  [
    ["tls://192.0.2.1:4222", unnamed, ofAddress, true],
    ["tls://192.0.2.1:4222", unnamed, ofLocalhost, false],
    ["tls://192.0.2.2:4222", unnamed, ofAddress, false],
    ["192.0.2.2:4222, tls://[2001:db8::1]:4222", unnamed, ofAddress, true],
    ["tls://192.0.2.1:4222,nats.example.com", "nats.example.com", ofName, true],
    ["tls://192.0.2.1:4222,nats.example.com", "nats.example.com", ofAddress, false],
    ["tls://192.0.2.1:4222,nats.example.com", unnamed, ofName, false],
    ["tls://localhost:4222", "localhost", ofLocalhost, true]
  ] as const
)("%s, called %s, shows a certificate %#", (servers, name, certificate, isAccepted) => {
  const check = identityCheck(servers.split(",").map((server) => server.trim()))
  assert.strictEqual(check(name, certificate) === undefined, isAccepted)
})
