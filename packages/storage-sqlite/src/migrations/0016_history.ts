/**
 * The history of devices.
 */
export default `
-- device_id: null if the device is removed; what is left of it goes later.
CREATE TABLE history_device (
  number INTEGER PRIMARY KEY,
  device_id TEXT UNIQUE
) STRICT;
CREATE INDEX history_device_removed ON history_device (number) WHERE device_id IS NULL;

CREATE TRIGGER history_of_removed_device AFTER DELETE ON device BEGIN
  UPDATE history_device SET device_id = NULL WHERE device_id = OLD.device_id;
END;

CREATE TABLE history_property (
  number INTEGER PRIMARY KEY,
  device INTEGER NOT NULL REFERENCES history_device (number) ON DELETE CASCADE,
  property_id TEXT NOT NULL,
  UNIQUE (device, property_id)
) STRICT;

-- place: the order of the values of one time, in which they were stored. value: JSON.
CREATE TABLE history_sample (
  property INTEGER NOT NULL,
  time INTEGER NOT NULL,
  place INTEGER NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (property, time, place)
) STRICT, WITHOUT ROWID;

CREATE TABLE history_event (
  number INTEGER PRIMARY KEY,
  device INTEGER NOT NULL,
  time INTEGER NOT NULL,
  event_id TEXT NOT NULL,
  value TEXT NOT NULL
) STRICT;
CREATE INDEX history_event_by_time ON history_event (device, time, number);
CREATE INDEX history_event_by_id ON history_event (device, event_id, time, number);

CREATE TABLE history_retention (
  product_key TEXT PRIMARY KEY REFERENCES product (product_key) ON DELETE CASCADE,
  days INTEGER NOT NULL
) STRICT;
`
