import { plural } from "./plural.ts"

/** Authorities that issue client certificates of devices. */
export const authorities = {
  register: "Register an authority",
  caption: "Certificate authorities of the project",
  empty: "No certificate authorities",
  emptyBody:
    "The cloud makes one with the first certificate that it issues. Register that of a factory that issues its own.",
  own: "The cloud's own",
  states: { pending: "to be verified", active: "active" },
  until: "Valid until",
  crl: "Revocation list",
  revoked: (count: string) => `${plural(count, "certificate")}, of`,
  certificate: "Certificate",
  verify: "Verify",
  sendCrl: "New revocation list",
  hints: {
    new: "The certificate of the authority. It counts once you have shown that you may use its key.",
    verification: "Let the authority issue a certificate with this common name, and send it:",
    crl: "It takes the place of the list before: what is on it is revoked, what is no more on it counts again."
  },
  removeTitle: (name: string) => `Delete the authority “${name}”?`,
  removeBody: "All certificates of devices that it has issued are deleted, and connections made with them are cut."
}
