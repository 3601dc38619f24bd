/**
 * The database schema, one migration after the other. A migration that has been
 * released is never changed.
 */
import { Effect } from "effect"
import { Migrator, SqlClient } from "effect/sql"

const statements = (texts: ReadonlyArray<string>) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => Effect.forEach(texts, (text) => sql.unsafe(text), { discard: true }))

/** Projects, access keys, products, devices, their presence and shadows. */
const initial = statements([
  `CREATE TABLE project (
    id text COLLATE "C" PRIMARY KEY,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    name text NOT NULL,
    created_at timestamptz NOT NULL
  )`,
  `CREATE INDEX project_newest ON project (created_at DESC, seq DESC)`,

  `CREATE TABLE access_key (
    id text COLLATE "C" PRIMARY KEY,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    project_id text COLLATE "C" NOT NULL REFERENCES project ON DELETE CASCADE,
    name text NOT NULL,
    role text NOT NULL,
    hash text NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz
  )`,
  `CREATE INDEX access_key_newest ON access_key (project_id, created_at DESC, seq DESC)`,
  `CREATE UNIQUE INDEX access_key_owner ON access_key (role) WHERE role = 'owner'`,

  `CREATE TABLE product (
    product_key text COLLATE "C" PRIMARY KEY,
    id bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    project_id text COLLATE "C" NOT NULL REFERENCES project,
    product_secret text NOT NULL,
    name text NOT NULL,
    description text NOT NULL,
    photo_url text NOT NULL,
    device_type text NOT NULL,
    node_type text NOT NULL,
    network_type text NOT NULL,
    protocol_type text NOT NULL,
    validate_type text NOT NULL,
    data_format text NOT NULL,
    auth_type text NOT NULL,
    data_source int NOT NULL,
    dynamic_register boolean NOT NULL,
    status text NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
  )`,
  `CREATE INDEX product_newest ON product (project_id, created_at DESC, id DESC)`,

  `CREATE TABLE device (
    device_id text COLLATE "C" PRIMARY KEY,
    id bigint GENERATED ALWAYS AS IDENTITY,
    project_id text COLLATE "C" NOT NULL,
    product_key text COLLATE "C" NOT NULL REFERENCES product,
    device_name text COLLATE "C" NOT NULL,
    device_secret text NOT NULL,
    nickname text NOT NULL,
    enabled boolean NOT NULL DEFAULT true,
    bound boolean NOT NULL DEFAULT false,
    batch_id bigint NOT NULL,
    cloud_gateway json,
    firmware_version text NOT NULL DEFAULT '',
    time_zone text NOT NULL DEFAULT '',
    status text NOT NULL DEFAULT 'unactive',
    status_version bigint NOT NULL DEFAULT 0,
    status_changed_at timestamptz,
    activated_at timestamptz,
    ip text NOT NULL DEFAULT '',
    connection_id text COLLATE "C",
    node_id text COLLATE "C",
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    UNIQUE (product_key, device_name)
  ) WITH (fillfactor = 85)`,
  // One index for each order in which the API lists devices: of a project, of a
  // product, of a batch, each also by status, and the disabled ones.
  `CREATE INDEX device_newest ON device (project_id, created_at DESC, id DESC)`,
  `CREATE INDEX device_newest_of_status ON device (project_id, status, created_at DESC, id DESC)`,
  `CREATE INDEX device_newest_of_product ON device (product_key, created_at DESC, id DESC)`,
  `CREATE INDEX device_newest_of_product_status ON device (product_key, status, created_at DESC, id DESC)`,
  `CREATE INDEX device_newest_of_batch ON device (batch_id, created_at DESC, id DESC) WHERE batch_id <> 0`,
  `CREATE INDEX device_newest_disabled ON device (project_id, created_at DESC, id DESC) WHERE NOT enabled`,
  `CREATE INDEX device_of_node ON device (node_id) WHERE node_id IS NOT NULL`,

  `CREATE TABLE node (
    id text COLLATE "C" PRIMARY KEY,
    heartbeat_at timestamptz NOT NULL
  )`,

  // json, not jsonb: it keeps every value that a device may send (jsonb refuses
  // escaped NUL characters and unpaired surrogates).
  `CREATE TABLE shadow (
    device_id text COLLATE "C" PRIMARY KEY REFERENCES device ON DELETE CASCADE,
    version bigint NOT NULL,
    reported json NOT NULL,
    desired json NOT NULL,
    updated_at timestamptz NOT NULL
  ) WITH (fillfactor = 50)`
])

/** Thing models, commands, the history of devices, tags, answers to requests that may come again. */
const modelsCommandsHistory = statements([
  `ALTER TABLE device ADD COLUMN tags json NOT NULL DEFAULT '{}'`,

  `CREATE TABLE thing_model (
    product_key text COLLATE "C" NOT NULL REFERENCES product ON DELETE CASCADE,
    version bigint NOT NULL,
    model json NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (product_key, version)
  )`,

  // No references to devices from here on: checking one for each row would lock
  // and rewrite the device's own. What belongs to a device is deleted with it.
  // state: the place in the list of CommandState; below 3 it has not ended.
  `CREATE TABLE command (
    message_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id text COLLATE "C" NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    service_id text,
    params json NOT NULL,
    state smallint NOT NULL DEFAULT 0,
    code bigint,
    message text NOT NULL DEFAULT '',
    data json NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
  ) WITH (fillfactor = 70)`,
  `CREATE INDEX command_newest ON command (device_id, created_at DESC, message_id DESC)`,
  `CREATE INDEX command_open ON command (device_id, message_id) WHERE state < 3`,
  `CREATE INDEX command_due ON command (expires_at) WHERE state < 3`,

  `CREATE TABLE request (
    project_id text COLLATE "C" NOT NULL REFERENCES project ON DELETE CASCADE,
    key text COLLATE "C" NOT NULL,
    fingerprint text NOT NULL,
    claimed_at timestamptz NOT NULL,
    status int,
    body text,
    PRIMARY KEY (project_id, key)
  )`,
  `CREATE INDEX request_claimed ON request (claimed_at)`,

  `CREATE TABLE property_sample (
    id bigint GENERATED ALWAYS AS IDENTITY,
    device_id text COLLATE "C" NOT NULL,
    property_id text COLLATE "C" NOT NULL,
    time timestamptz NOT NULL,
    value json NOT NULL,
    stored_at timestamptz NOT NULL DEFAULT now()
  )`,
  `CREATE INDEX property_sample_by_time ON property_sample (device_id, property_id, time, id)`,
  `CREATE INDEX property_sample_stored ON property_sample USING brin (stored_at)`,

  `CREATE TABLE device_event (
    id bigint GENERATED ALWAYS AS IDENTITY,
    device_id text COLLATE "C" NOT NULL,
    event_id text COLLATE "C" NOT NULL,
    time timestamptz NOT NULL,
    value json NOT NULL,
    stored_at timestamptz NOT NULL DEFAULT now()
  )`,
  `CREATE INDEX device_event_by_time ON device_event (device_id, time, id)`,
  `CREATE INDEX device_event_of_kind_by_time ON device_event (device_id, event_id, time, id)`,
  `CREATE INDEX device_event_stored ON device_event USING brin (stored_at)`
])

/** Registration of devices, devices that hold no connection, messages on topics of the application. */
const deviceAccess = statements([
  `ALTER TABLE device
    ADD mac text COLLATE "C",
    ADD diagnosis_enabled boolean NOT NULL DEFAULT false,
    ADD online_until timestamptz`,
  `CREATE UNIQUE INDEX device_of_mac ON device (product_key, mac) WHERE mac <> ''`,
  `CREATE INDEX device_unregistered ON device (product_key, id) WHERE mac IS NULL AND activated_at IS NULL AND enabled`,
  `CREATE INDEX device_online_until ON device (online_until) WHERE online_until IS NOT NULL`,
  `ALTER TABLE command ADD user_topic text`
])

/** Batches, tags and names by which devices are found, products of other platforms. */
const batches = statements([
  `CREATE TABLE device_batch (
    batch_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id text COLLATE "C" NOT NULL,
    product_key text COLLATE "C" NOT NULL REFERENCES product ON DELETE CASCADE,
    size int NOT NULL,
    description text NOT NULL,
    created_at timestamptz NOT NULL
  )`,
  `ALTER TABLE device ALTER tags DROP DEFAULT, ALTER tags TYPE jsonb USING tags::jsonb, ALTER tags SET DEFAULT '{}'`,
  `CREATE INDEX device_by_tag ON device USING gin (tags jsonb_path_ops) WHERE tags <> '{}'`,
  `CREATE INDEX device_by_name ON device (project_id, device_name)`,
  `CREATE INDEX device_by_nickname ON device (project_id, nickname COLLATE "C") WHERE nickname <> ''`,
  `ALTER TABLE product
    ADD platform int NOT NULL DEFAULT 0,
    ADD platform_name text NOT NULL DEFAULT ''`
])

/** Firmware, upgrade tasks, versions of modules. */
const ota = statements([
  `CREATE TABLE firmware (
    firmware_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id text COLLATE "C" NOT NULL,
    product_key text COLLATE "C" NOT NULL REFERENCES product ON DELETE CASCADE,
    name text NOT NULL,
    version text NOT NULL,
    oss_path text NOT NULL,
    hash text NOT NULL,
    size int NOT NULL,
    remark text NOT NULL,
    module text NOT NULL,
    status smallint NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    UNIQUE (product_key, module, version)
  )`,
  `CREATE INDEX firmware_newest ON firmware (project_id, created_at DESC, firmware_id DESC)`,

  `CREATE TABLE ota_task (
    task_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL,
    project_id text COLLATE "C" NOT NULL,
    product_key text COLLATE "C" NOT NULL,
    firmware_id bigint NOT NULL REFERENCES firmware ON DELETE CASCADE,
    module text NOT NULL,
    version text NOT NULL,
    status smallint NOT NULL,
    upgrade_policy smallint NOT NULL,
    scope_mode smallint NOT NULL,
    timeout int NOT NULL,
    need_app_confirm boolean NOT NULL,
    is_app_confirmed boolean NOT NULL,
    maximum_per_minute int NOT NULL,
    retry_count int NOT NULL,
    retry_interval int NOT NULL,
    abort_threshold_percent int NOT NULL,
    abort_min_executed int NOT NULL,
    pending int NOT NULL DEFAULT 0,
    upgrading int NOT NULL DEFAULT 0,
    succeeded int NOT NULL DEFAULT 0,
    failed int NOT NULL DEFAULT 0,
    cancelled int NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
  ) WITH (fillfactor = 50)`,
  `CREATE INDEX ota_task_newest ON ota_task (firmware_id, created_at DESC, task_id DESC)`,

  // A record stays when its device is deleted: it is history.
  `CREATE TABLE ota_record (
    task_id bigint NOT NULL REFERENCES ota_task ON DELETE CASCADE,
    device_id text COLLATE "C" NOT NULL,
    device_name text NOT NULL,
    module text NOT NULL,
    status smallint NOT NULL DEFAULT 1,
    step int NOT NULL DEFAULT 0,
    is_confirmed boolean NOT NULL DEFAULT false,
    failures int NOT NULL DEFAULT 0,
    reason text NOT NULL DEFAULT '',
    due_at timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    revision bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (task_id, device_id)
  ) WITH (fillfactor = 80)`,
  `CREATE INDEX ota_record_newest ON ota_record (task_id, created_at DESC, device_id DESC)`,
  `CREATE INDEX ota_record_of_device ON ota_record (device_id, task_id)`,
  `CREATE UNIQUE INDEX ota_record_unfinished ON ota_record (device_id, module) WHERE status < 3`,
  `CREATE INDEX ota_record_due ON ota_record (due_at) WHERE due_at IS NOT NULL`,

  `CREATE TABLE device_module (
    device_id text COLLATE "C" NOT NULL REFERENCES device ON DELETE CASCADE,
    module text NOT NULL,
    version text NOT NULL,
    reported_at timestamptz NOT NULL,
    PRIMARY KEY (device_id, module)
  )`
])

/** Sub-devices of gateways, and the sessions in which gateways look for them. */
const topology = statements([
  `CREATE TABLE sub_device (
    device_id text COLLATE "C" PRIMARY KEY REFERENCES device ON DELETE CASCADE,
    gateway_id text COLLATE "C" NOT NULL REFERENCES device ON DELETE CASCADE,
    position bigint GENERATED ALWAYS AS IDENTITY,
    attached_at timestamptz NOT NULL
  )`,
  `CREATE INDEX sub_device_of_gateway ON sub_device (gateway_id, position)`,

  `CREATE TABLE add_session (
    session_id text COLLATE "C" PRIMARY KEY,
    project_id text COLLATE "C" NOT NULL,
    gateway_id text COLLATE "C" NOT NULL REFERENCES device ON DELETE CASCADE,
    product_keys text[] NOT NULL,
    started_at timestamptz NOT NULL,
    ends_at timestamptz NOT NULL,
    ended_at timestamptz
  )`,
  `CREATE UNIQUE INDEX add_session_open ON add_session (gateway_id) WHERE ended_at IS NULL`,
  `CREATE INDEX add_session_due ON add_session (ends_at) WHERE ended_at IS NULL`,
  `CREATE INDEX add_session_ended ON add_session (ended_at) WHERE ended_at IS NOT NULL`,
  `CREATE INDEX add_session_of_gateway ON add_session (gateway_id)`,

  `CREATE TABLE add_session_member (
    session_id text COLLATE "C" NOT NULL REFERENCES add_session ON DELETE CASCADE,
    device_id text COLLATE "C" NOT NULL REFERENCES device ON DELETE CASCADE,
    position bigint GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (session_id, device_id)
  )`,
  `CREATE INDEX add_session_member_device ON add_session_member (device_id)`
])

/** Mesh networks, and what devices report when they join. */
const mesh = statements([
  `CREATE TABLE mesh_network (
    network_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id text COLLATE "C" NOT NULL REFERENCES project ON DELETE CASCADE,
    network_key text COLLATE "C" NOT NULL,
    app_key text NOT NULL,
    unicast_cursor int NOT NULL,
    provisioner_cursor int NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    UNIQUE (project_id, network_key)
  )`,
  `CREATE INDEX mesh_network_newest ON mesh_network (project_id, created_at DESC, network_id DESC)`,

  `CREATE TABLE mesh_node (
    node_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    network_id bigint NOT NULL REFERENCES mesh_network ON DELETE CASCADE,
    device_id text COLLATE "C" NOT NULL REFERENCES device ON DELETE CASCADE,
    mesh_addr int NOT NULL,
    node_type smallint NOT NULL,
    created_at timestamptz NOT NULL,
    UNIQUE (network_id, device_id),
    UNIQUE (network_id, mesh_addr)
  )`,
  `CREATE INDEX mesh_node_newest ON mesh_node (network_id, created_at DESC, node_id DESC)`,
  `CREATE INDEX mesh_node_of_device ON mesh_node (device_id)`,
  `CREATE INDEX mesh_node_gateway ON mesh_node (network_id) WHERE node_type = 2`,

  `CREATE TABLE device_binding (
    device_id text COLLATE "C" PRIMARY KEY REFERENCES device ON DELETE CASCADE,
    reported text,
    expected text,
    expected_until timestamptz
  )`
])

/** Pages of a task's records at one price, downloads over MQTT. */
const otaPlaces = statements([
  `ALTER TABLE ota_task ADD download_protocol text NOT NULL DEFAULT 'https'`,
  // Which firmware has a task that has not ended, and its newest verify task.
  `CREATE INDEX ota_task_unfinished ON ota_task (firmware_id) WHERE status < 2`,
  `CREATE INDEX ota_task_verify ON ota_task (firmware_id, task_id) WHERE kind = 'verify'`,
  // 0 and up in each task, without gaps.
  `ALTER TABLE ota_record ADD place int`,
  `UPDATE ota_record SET place = rank.place
    FROM (
      SELECT task_id, device_id, row_number() OVER (PARTITION BY task_id ORDER BY created_at, device_id) - 1 AS place
      FROM ota_record
    ) AS rank
    WHERE ota_record.task_id = rank.task_id AND ota_record.device_id = rank.device_id`,
  `ALTER TABLE ota_record ALTER place SET NOT NULL`,
  `DROP INDEX ota_record_newest`,
  `CREATE INDEX ota_record_place ON ota_record (task_id, place)`
])

/** Scenes, their timers and executions, the keys of webhooks; calls with an origin. */
const scenes = statements([
  `CREATE TABLE scene (
    scene_id text COLLATE "C" PRIMARY KEY,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    project_id text COLLATE "C" NOT NULL REFERENCES project ON DELETE CASCADE,
    name text NOT NULL,
    description text NOT NULL,
    status text NOT NULL,
    triggers json NOT NULL,
    conditions json NOT NULL,
    actions json NOT NULL,
    paused_until timestamptz,
    revision bigint NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    UNIQUE (project_id, name)
  )`,
  `CREATE INDEX scene_newest ON scene (project_id, created_at DESC, seq DESC)`,
  `CREATE INDEX scene_newest_of_status ON scene (project_id, status, created_at DESC, seq DESC)`,

  `CREATE TABLE scene_product (
    product_key text COLLATE "C" NOT NULL,
    scene_id text COLLATE "C" NOT NULL REFERENCES scene ON DELETE CASCADE,
    PRIMARY KEY (product_key, scene_id)
  )`,
  `CREATE INDEX scene_product_of_scene ON scene_product (scene_id)`,

  `CREATE TABLE scene_timer (
    cron_id text COLLATE "C" PRIMARY KEY,
    scene_id text COLLATE "C" NOT NULL REFERENCES scene ON DELETE CASCADE,
    project_id text COLLATE "C" NOT NULL,
    cron text NOT NULL,
    due_at timestamptz
  )`,
  `CREATE INDEX scene_timer_of_scene ON scene_timer (scene_id)`,
  `CREATE INDEX scene_timer_due ON scene_timer (due_at) WHERE due_at IS NOT NULL`,

  // What waits to be carried out, and what has been: a row moves from the one to
  // the other. It refers to its scene only when it is stored, so that a report
  // is not refused for a scene that is being deleted.
  `CREATE TABLE scene_execution (
    execution_id text COLLATE "C" PRIMARY KEY,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    scene_id text COLLATE "C" NOT NULL,
    project_id text COLLATE "C" NOT NULL,
    fired_at timestamptz NOT NULL,
    event json NOT NULL,
    chain json NOT NULL,
    status text NOT NULL DEFAULT 'pending',
    reason text NOT NULL DEFAULT '',
    verdict json NOT NULL DEFAULT 'null',
    outcomes json NOT NULL DEFAULT '[]',
    has_fired boolean NOT NULL DEFAULT false,
    due_at timestamptz,
    revision bigint NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL
  )`,
  `CREATE INDEX scene_execution_newest ON scene_execution (scene_id, seq DESC)`,
  `CREATE INDEX scene_execution_due ON scene_execution (due_at, seq) WHERE due_at IS NOT NULL`,
  `CREATE INDEX scene_execution_fired ON scene_execution (scene_id, fired_at) WHERE has_fired`,

  `CREATE TABLE webhook_key (
    project_id text COLLATE "C" PRIMARY KEY REFERENCES project ON DELETE CASCADE,
    current text NOT NULL,
    created_at timestamptz NOT NULL,
    previous text,
    previous_until timestamptz
  )`,

  `ALTER TABLE command ADD origin text COLLATE "C"`,
  `CREATE UNIQUE INDEX command_of_origin ON command (device_id, origin) WHERE origin IS NOT NULL`
])

/** Brings the database up to date; safe when several servers start at once. */
export const migrate = Migrator.make({})({
  loader: Migrator.fromRecord({
    "0001_initial": initial,
    "0002_models_commands_history": modelsCommandsHistory,
    "0003_device_access": deviceAccess,
    "0004_batches": batches,
    "0005_ota": ota,
    "0006_topology": topology,
    "0007_scenes": scenes,
    "0008_mesh": mesh,
    "0009_ota_places": otaPlaces
  }),
  table: "device_cloud_migration"
})
