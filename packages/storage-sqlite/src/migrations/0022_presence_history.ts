/**
 * Finds in the feed what tells of the presence of a device.
 */
export default `
CREATE INDEX feed_presence ON feed (device_id, number)
  WHERE kind IN ('DeviceStatusChanged', 'ConnectionReplaced');
`
