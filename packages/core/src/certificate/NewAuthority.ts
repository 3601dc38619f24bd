/**
 * An authority before it is stored.
 */
import { Clock, Effect } from "effect"
import type { Identifiers } from "../kernel/Identifiers.ts"
import type { ProjectId } from "../project/Project.ts"
import type { AuthorityKind, NewAuthority } from "./Certificate.ts"
import type { ReadCertificate } from "./X509.ts"

/** Makes an authority from its certificate. The own one of a project needs no verification. */
export const newAuthority = Effect.fnUntraced(function*(
  identifiers: Identifiers["Service"],
  projectId: ProjectId,
  kind: AuthorityKind,
  name: string,
  { fingerprint, notAfter, notBefore, pem, subject }: ReadCertificate
): Effect.fn.Return<NewAuthority> {
  return {
    authorityId: yield* identifiers.authorityId,
    projectId,
    kind,
    name,
    state: kind === "own" ? "active" : "pending",
    verificationCode: kind === "own" ? "" : yield* identifiers.hexKey,
    certificate: pem,
    fingerprint,
    subject,
    notBefore,
    notAfter,
    createdAt: yield* Clock.currentTimeMillis
  }
})
