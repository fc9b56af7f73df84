//! Seconds since 1970 and the date they are, in the Gregorian calendar.

const DAY: i64 = 86_400;

/// A date and time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Date {
    pub(crate) year: i64,
    /// 1 to 12.
    pub(crate) month: i64,
    /// 1 to 31.
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
}

impl Date {
    pub(crate) fn of(seconds: i64) -> Date {
        let (days, rest) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
        // Years begin in March here, so that the leap day is the last of its year.
        let days = days + 719_468;
        let era = days.div_euclid(146_097);
        let in_era = days.rem_euclid(146_097);
        let year = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
        let in_year = in_era - (365 * year + year / 4 - year / 100);
        let month = (5 * in_year + 2) / 153;
        let (day, month) =
            (in_year - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
        Date {
            year: era * 400 + year + i64::from(month <= 2),
            month,
            day,
            hour: rest / 3600,
            minute: rest / 60 % 60,
            second: rest % 60,
        }
    }

    /// The inverse; a day past the end of its month is one of the next.
    pub(crate) fn seconds(self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let month = (self.month + 9).rem_euclid(12);
        let (era, in_era) = (year.div_euclid(400), year.rem_euclid(400));
        let in_year = (153 * month + 2) / 5 + self.day - 1;
        let days = era * 146_097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719_468;
        days * DAY + self.hour * 3600 + self.minute * 60 + self.second
    }

    /// Is it near enough to our time, and its parts small enough, to be counted with?
    pub(crate) fn is_near(self) -> bool {
        let parts = [self.month, self.day, self.hour, self.minute, self.second];
        self.year.unsigned_abs() <= 1 << 30 && parts.iter().all(|part| (0..=255).contains(part))
    }

    /// 1 is Sunday, as the clock chip counts.
    pub(crate) fn weekday(self) -> i64 {
        (self.seconds().div_euclid(DAY) + 4).rem_euclid(7) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_dates() {
        let date = |year, month, day| Date { year, month, day, hour: 0, minute: 0, second: 0 };
        for (seconds, expected, weekday) in [
            (0, date(1970, 1, 1), 5),
            (951_782_400, date(2000, 2, 29), 3),
            (4_107_542_400, date(2100, 3, 1), 2),
            (-86_400, date(1969, 12, 31), 4),
        ] {
            assert_eq!(Date::of(seconds), expected);
            assert_eq!((expected.seconds(), expected.weekday()), (seconds, weekday));
        }
        assert_eq!(date(2023, 2, 29).seconds(), date(2023, 3, 1).seconds());
    }

    #[test]
    fn dates_and_seconds_are_inverse() {
        for seconds in (-70_000_000_000..70_000_000_000).step_by(7_654_321) {
            assert_eq!(Date::of(seconds).seconds(), seconds);
        }
    }
}
