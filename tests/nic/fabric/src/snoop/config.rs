// SPDX-License-Identifier: GPL-2.0
//! Timers and choices of a snooping switch.

use std::time::Duration;

/// The settings; names and defaults of the timers are those of RFC 9776, section 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Messages that may be lost.
    pub robustness: u8,
    /// Time between general queries.
    pub interval: Duration,
    /// Time that hosts have to answer one.
    pub response: Duration,
    /// Time that they have after somebody left a group.
    pub last_member: Duration,
    /// Whether the switch asks while no router does.
    pub querier: bool,
    /// Whether a port is taken off a group at once when a host behind it leaves.
    pub fast_leave: bool,
    /// Whether frames of groups that nobody joined go everywhere.
    pub flood_unregistered: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            robustness: 2,
            interval: Duration::from_secs(125),
            response: Duration::from_secs(10),
            last_member: Duration::from_secs(1),
            querier: true,
            fast_leave: false,
            flood_unregistered: false,
        }
    }
}

impl Config {
    /// Time after which a member that does not answer is one no more.
    pub fn membership(&self) -> Duration {
        self.interval * u32::from(self.robustness) + self.response
    }

    /// Time after which a router that does not ask is gone.
    pub fn router(&self) -> Duration {
        self.interval * u32::from(self.robustness) + self.response / 2
    }

    /// Time between the queries of a switch that has just started to ask.
    pub fn startup(&self) -> Duration {
        self.interval / 4
    }

    /// Time after which a group is over if nobody answers to somebody's leaving.
    pub fn leave(&self) -> Duration {
        self.last_member * u32::from(self.robustness)
    }

    /// Changes what a text like `interval=2,response=1,unregistered=flood,fast_leave=true` names.
    /// Times are in seconds, with fractions if need be.
    ///
    /// # Errors
    ///
    /// The part that is not understood.
    pub fn change(mut self, text: &str) -> Result<Self, String> {
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| format!("{part}: not NAME=VALUE"))?;
            let wrong = || format!("{name}={value}: not possible");
            match name {
                "robustness" => {
                    self.robustness = value.parse().map_err(|_| wrong())?;
                    if !(1..=7).contains(&self.robustness) {
                        return Err(wrong());
                    }
                }
                "interval" => self.interval = seconds(value).ok_or_else(wrong)?,
                "response" => self.response = seconds(value).ok_or_else(wrong)?,
                "last_member" => self.last_member = seconds(value).ok_or_else(wrong)?,
                "querier" => self.querier = value.parse().map_err(|_| wrong())?,
                "fast_leave" => self.fast_leave = value.parse().map_err(|_| wrong())?,
                "unregistered" => {
                    self.flood_unregistered = match value {
                        "flood" => true,
                        "drop" => false,
                        _ => return Err(wrong()),
                    }
                }
                _ => {
                    return Err(format!(
                        "{name}: not one of robustness, interval, response, last_member, \
                         querier, fast_leave, unregistered"
                    ))
                }
            }
        }
        if self.response >= self.interval {
            return Err("the response time has to be shorter than the interval".to_owned());
        }
        Ok(self)
    }
}

fn seconds(text: &str) -> Option<Duration> {
    let duration = Duration::try_from_secs_f64(text.parse().ok()?).ok()?;
    // Messages carry tenths of seconds.
    (duration >= Duration::from_millis(100) && duration <= Duration::from_secs(3600))
        .then_some(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_change_what_they_name() {
        let config = Config::default()
            .change("interval=2.5,response=0.5,unregistered=flood,fast_leave=true")
            .unwrap();
        assert_eq!(config.membership(), Duration::from_millis(5500));
        assert!(config.fast_leave && config.flood_unregistered && config.querier);
        assert_eq!(Config::default().change(""), Ok(Config::default()));
        assert_eq!(Config::default().membership(), Duration::from_secs(260));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "x=1",
            "interval",
            "interval=0",
            "interval=-1",
            "interval=nan",
            "robustness=8",
            "querier=1",
            "unregistered=maybe",
            "response=200",
        ] {
            assert!(Config::default().change(text).is_err(), "{text}");
        }
    }
}
