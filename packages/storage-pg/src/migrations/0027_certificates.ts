/**
 * Client certificates of devices, their authorities, and what these have revoked.
 */
import { statements } from "./statements.ts"

export default statements([
  `CREATE TABLE certificate_authority (
    authority_id text COLLATE "C" PRIMARY KEY,
    project_id text COLLATE "C" NOT NULL REFERENCES project ON DELETE CASCADE,
    kind text NOT NULL,
    name text NOT NULL,
    state text NOT NULL,
    verification_code text NOT NULL,
    certificate text NOT NULL,
    private_key text,
    sealed_with int NOT NULL DEFAULT 0,
    fingerprint text COLLATE "C" NOT NULL,
    subject text NOT NULL,
    not_before timestamptz NOT NULL,
    not_after timestamptz NOT NULL,
    list_issued_at timestamptz,
    list_next_at timestamptz,
    list_size int,
    created_at timestamptz NOT NULL,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    UNIQUE (project_id, fingerprint)
  )`,
  `CREATE UNIQUE INDEX certificate_authority_own ON certificate_authority (project_id) WHERE kind = 'own'`,
  `CREATE INDEX certificate_authority_sealed_with ON certificate_authority (sealed_with)`,
  `CREATE TABLE revoked_serial (
    authority_id text COLLATE "C" NOT NULL REFERENCES certificate_authority ON DELETE CASCADE,
    serial text COLLATE "C" NOT NULL,
    revoked_at timestamptz NOT NULL,
    PRIMARY KEY (authority_id, serial)
  )`,
  `CREATE TABLE device_certificate (
    fingerprint text COLLATE "C" PRIMARY KEY,
    serial text COLLATE "C" NOT NULL,
    device_id text COLLATE "C" NOT NULL REFERENCES device ON DELETE CASCADE,
    authority_id text COLLATE "C" NOT NULL REFERENCES certificate_authority ON DELETE CASCADE,
    subject text NOT NULL,
    certificate text NOT NULL,
    not_before timestamptz NOT NULL,
    not_after timestamptz NOT NULL,
    ends_at timestamptz,
    revoked_at timestamptz,
    created_at timestamptz NOT NULL,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    UNIQUE (device_id, serial)
  )`,
  `CREATE INDEX device_certificate_authority ON device_certificate (authority_id)`
])
